// Copies the hidden arguments: 64 words behind the explicit ones, as code object V5 lays them out.
#include "gpu.h"

KERNEL void hidden(u32 *out, u32 words) {
  __attribute__((address_space(4))) u32 *from = (__attribute__((address_space(4))) u32 *)__builtin_amdgcn_implicitarg_ptr();
  if (group() == 0 && __builtin_amdgcn_workgroup_id_y() == 0 && item() == 0 && __builtin_amdgcn_workitem_id_y() == 0)
    for (u32 i = 0; i < words; i++)
      out[i] = from[i];
}
