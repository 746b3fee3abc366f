// Kernels that go wrong, each in a way of its own.
#include "gpu.h"
// A store of a byte by each work-item.
KERNEL GROUP(64) void store(u8 *to, u64 offset) { ((volatile u8 *)to)[offset + item()] = item(); }
// Goes on with what lies at an address.
KERNEL GROUP(64) void jump(u64 where) { __asm__ volatile("s_setpc_b64 %0" : : "s"(where)); }
// As much private memory as a work-item can have: 128 KiB less 16 bytes.
KERNEL GROUP(64) void deep(u32 *out, u32 n) {
  volatile u32 memory[32760];
  memory[n] = global_id();
  memory[n + 1] = 1;
  out[global_id()] = memory[n] + memory[n + 1];
}
// Polls for a value that nobody writes.
KERNEL GROUP(64) void poll(u32 *flag) {
  while (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0)
    __builtin_amdgcn_s_sleep(1);
}
