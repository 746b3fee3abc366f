// Kernels that the compiler instruments with -fsanitize=address; asan_runtime.c is what they call. Each is right for `n` 0.
#include "gpu.h"
LDS u32 tile[64];
extern __attribute__((address_space(3))) u32 dynamic[];
u32 table[10] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5};

KERNEL void store(u32 *out, u32 n) { out[global_id() + n] = 1; }

// Two kernels with LDS would come out in an order that differs from build to build (LLVM 22).
KERNEL void lds(u32 *out, u32 n) {
  tile[item()] = item();
  dynamic[item()] = 1000 * item();
  barrier();
  out[item()] = tile[63 - item() + n] + dynamic[63 - item()];
}

KERNEL void variable(u32 *out, u32 n) { out[item()] = table[item() % 10 + n]; }
