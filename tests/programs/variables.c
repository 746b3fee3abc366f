// A kernel with variables of its own and one that the host defines, for `kfdrun launch`.
#include "gpu.h"
__attribute__((visibility("protected"))) u32 counter = 5;
__attribute__((visibility("protected"))) float weights[4];
extern __attribute__((visibility("default"))) u32 elsewhere[2];

KERNEL void count(u32 *out) {
  out[0] = counter++;
  out[1] = (u32)(weights[0] + weights[3]);
  out[2] = elsewhere[0];
  elsewhere[1] = 77;
}
