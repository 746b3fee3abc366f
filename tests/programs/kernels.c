// Kernels for tests of the library: arguments of several kinds, several work-groups, LDS, data that persists.
#include "gpu.h"
KERNEL GROUP(1024) void vecadd(const float *a, const float *b, float *c, u32 n) {
  u32 i = global_id();
  if (i < n)
    c[i] = a[i] + b[i];
}
LDS u32 block[256];
KERNEL __attribute__((amdgpu_flat_work_group_size(256, 256))) void reduce(const u32 *in, u32 *out, u32 n) {
  u32 l = item(), i = group() * 256 + l;
  block[l] = i < n ? in[i] : 0;
  barrier();
  for (u32 step = 128; step; step /= 2) {
    if (l < step)
      block[l] += block[l + step];
    barrier();
  }
  if (l == 0)
    out[group()] = block[0];
}
KERNEL GROUP(1024) void scale(u32 *out, u8 factor, u16 offset, u64 high, u32 n) {
  u32 i = global_id();
  if (i < n)
    out[i] = out[i] * factor + offset + (u32)(high >> 32);
}
// The launch as the implicit arguments and the dispatch packet tell it.
KERNEL GROUP(1024) void shape(u32 *out) {
  if (global_id() || __builtin_amdgcn_workgroup_id_y() || __builtin_amdgcn_workitem_id_y())
    return;
  out[0] = __builtin_amdgcn_workgroup_size_x();
  out[1] = __builtin_amdgcn_workgroup_size_y();
  out[2] = __builtin_amdgcn_workgroup_size_z();
  out[3] = __builtin_amdgcn_grid_size_x();
  out[4] = __builtin_amdgcn_grid_size_y();
  out[5] = __builtin_amdgcn_grid_size_z();
  const u8 __attribute__((address_space(4))) *implicit = __builtin_amdgcn_implicitarg_ptr();
  out[6] = *(const u32 __attribute__((address_space(4))) *)(implicit + 0);
  out[7] = *(const u32 __attribute__((address_space(4))) *)(implicit + 4);
  out[8] = *(const u16 __attribute__((address_space(4))) *)(implicit + 12);
  out[9] = *(const u16 __attribute__((address_space(4))) *)(implicit + 18);
  out[10] = *(const u16 __attribute__((address_space(4))) *)(implicit + 64);
}
__attribute__((visibility("protected"), used)) u32 counter = 7;
KERNEL GROUP(1) void persist(u32 *out) { out[0] = counter++; }
KERNEL GROUP(64) void store_null(u32 *out, u64 where) {
  out[0] = 1;
  *(volatile u32 *)where = item();
}
