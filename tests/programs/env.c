// Prints its environment.
#include "gpu.h"
int main(int argc, char **argv, char **envp) {
  for (; *envp; envp++) {
    print(*envp);
    print("\n");
  }
  return 0;
}
