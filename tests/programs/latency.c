// How long the host takes to answer a call, by the GPU's clock, after pauses of different length: waiting hosts
// tend to sleep. With an argument, only after short ones.
#include "gpu.h"
enum { INCREMENT = 0x8000, CALLS = 64 };
// Set by the host to the clock's frequency in Hz.
__attribute__((visibility("protected"), used)) volatile u64 __llvm_libc_clock_freq = 1;

static u64 now(void) { return __builtin_readsteadycounter(); }

static void measure(u64 pause) {
  u64 took[CALLS];
  u64 microsecond = __llvm_libc_clock_freq / 1000000;
  for (u32 i = 0; i < CALLS; i++) {
    for (u64 start = now(); now() - start < pause * microsecond;)
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
  print_number(took[CALLS / 2] / microsecond);
  print(" us, nine of ten within ");
  print_number(took[CALLS * 9 / 10] / microsecond);
  print(" us\n");
}

int main(int argc, char **argv, char **envp) {
  print("clock of ");
  print_number(__llvm_libc_clock_freq / 1000);
  print(" kHz\n");
  measure(0);
  measure(200);
  if (argc > 1)
    return 0;
  measure(5000);
  measure(20000);
  return 0;
}
