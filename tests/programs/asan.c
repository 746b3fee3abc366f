// What -fsanitize=address leaves in a kernel: a look at shadow memory and a call of the sanitizer's runtime, which RUNTIME
// puts into the image.
#include "gpu.h"
#ifdef RUNTIME
__attribute__((visibility("protected"), used)) void __asan_report_store4(u64 address) { __builtin_trap(); }
#else
__attribute__((visibility("default"))) void __asan_report_store4(u64 address);
#endif
KERNEL void guarded(u32 *out) {
  signed char shadow = *(signed char *)(((u64)out >> 3) + 0x7fff8000);
  if (shadow)
    __asan_report_store4((u64)out);
  *out = 1;
}
