// Kernels that call ROCm's device library. It isn't in the repository: tests/device_library.rs builds this where it is at
// hand. With SANITIZED the address sanitizer's part of the library is called by the compiler.
#include "gpu.h"
#ifdef SANITIZED
// Calls each of the functions that instrumented code may call, so that they are there when it does.
extern void __amdgpu_device_library_preserve_asan_functions(void);
__attribute__((used)) void (*keep)(void) = __amdgpu_device_library_preserve_asan_functions;
u32 table[10] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
KERNEL void store(u32 *out, u32 n) { out[global_id() + n] = 1; }
KERNEL void variable(u32 *out, u32 n) { out[item()] = table[item() % 10 + n]; }
#else
extern u64 __ockl_dm_alloc(u64 size);
extern void __ockl_dm_dealloc(u64 address);
extern u64 __ockl_printf_begin(u64 version);
extern u64 __ockl_printf_append_args(u64 message, u32 count, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u32 last);
extern u64 __ockl_printf_append_string_n(u64 message, const char *text, u64 size, u32 last);

// Each work-item allocates, fills, checks and frees, three times.
KERNEL GROUP(256) void heap(u32 *out, u32 size) {
  u32 id = global_id(), bytes = size + 16 * (id % 7), bad = 0;
  for (u32 round = 0; round < 3; round++) {
    u32 *memory = (u32 *)__ockl_dm_alloc(bytes);
    if (!memory) {
      out[id] = ~0u;
      return;
    }
    for (u32 i = 0; i < bytes / 4; i++)
      memory[i] = id * 1000 + i;
    for (u32 i = 0; i < bytes / 4; i++)
      bad += memory[i] != id * 1000 + i;
    __ockl_dm_dealloc((u64)memory);
  }
  out[id] = bad;
}

KERNEL GROUP(256) void say(u32 *out) {
  static const char format[] = "work-item %d of %s: %5.2f\n", name[] = "a text that is longer than one packet holds, by far";
  u64 message = __ockl_printf_begin(0);
  message = __ockl_printf_append_string_n(message, format, sizeof format, 0);
  message = __ockl_printf_append_args(message, 1, global_id(), 0, 0, 0, 0, 0, 0, 0);
  message = __ockl_printf_append_string_n(message, name, sizeof name, 0);
  out[global_id()] = __ockl_printf_append_args(message, 1, 0x4009000000000000, 0, 0, 0, 0, 0, 0, 1);
}
#endif
