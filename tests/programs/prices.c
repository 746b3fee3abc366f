// Asks the host for the price of each item, by a call that only its host knows, and prints the sum.
#include "gpu.h"
enum { PRICE = 0x6b000001 };
int main(int argc, char **argv, char **envp) {
  u64 sum = 0;
  for (u32 item = 1; item <= 4; item++)
    sum += call_host(PRICE, item, 0);
  print("all of it: ");
  print_number(sum);
  print("\n");
  return sum;
}
