// A kernel without arguments, built without optimisation: its hidden arguments stay.
#include "gpu.h"
__attribute__((visibility("protected"), used)) u32 seen = 0;
KERNEL GROUP(64) void noargs(void) {
  if (global_id() == 0)
    seen = __builtin_amdgcn_workgroup_size_x();
}
