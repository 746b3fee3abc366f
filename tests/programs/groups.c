// Runs with any number of threads and work-groups: each group sums its item numbers over LDS. Returns 0, or 1.
#include "gpu.h"
LDS u32 part[1024];
int main(int argc, char **argv, char **envp) {
  u32 n = group_size(), me = item();
  part[me] = me + group();
  barrier();
  u32 sum = 0;
  for (u32 i = 0; i < n; i++)
    sum += part[i];
  return sum == n * (n - 1) / 2 + n * group() ? 0 : 1;
}
