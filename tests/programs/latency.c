// How long the host takes to answer a call, by the GPU's clock of 100 MHz, after pauses of different length: waiting hosts
// tend to sleep. With an argument, only after short ones.
#include "gpu.h"
enum { INCREMENT = 0x8000, CALLS = 64, TICKS_OF_A_MICROSECOND = 100 };

static u64 now(void) { return __builtin_readsteadycounter(); }

static void measure(u64 pause) {
  u64 took[CALLS];
  for (u32 i = 0; i < CALLS; i++) {
    for (u64 start = now(); now() - start < pause * TICKS_OF_A_MICROSECOND;)
      __builtin_amdgcn_s_sleep(10);
    u64 start = now();
    call_host(INCREMENT, i, 0);
    u64 ticks = now() - start;
    u32 at = i;
    for (; at > 0 && took[at - 1] > ticks; at--)
      took[at] = took[at - 1];
    took[at] = ticks;
  }
  print_number(pause);
  print(" us before a call: median ");
  print_number(took[CALLS / 2] / TICKS_OF_A_MICROSECOND);
  print(" us, nine of ten within ");
  print_number(took[CALLS * 9 / 10] / TICKS_OF_A_MICROSECOND);
  print(" us\n");
}

int main(int argc, char **argv, char **envp) {
  measure(0);
  measure(200);
  if (argc > 1)
    return 0;
  measure(5000);
  measure(20000);
  return 0;
}
