// Kernels with arguments of many types, for `kfdrun launch`.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef struct {
  uint a;
  uchar b;
  ulong c;
} Packed;

#define I ((uint)(__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()))

kernel void scalars(global double *out, char c, uchar uc, short s, ushort us, int i, uint ui, long l, ulong ul, half h,
                    float f, double d) {
  double values[11] = {c, uc, s, us, i, ui, l, ul, h, f, d};
  if (I < 11)
    out[I] = values[I];
}

kernel void vectors(global float *out, float4 v, int3 w, Packed p) {
  float values[10] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, p.a, p.b, p.c};
  if (I < 10)
    out[I] = values[I];
}

kernel void scale(global const float *in, global float *out, float by, uint n) {
  if (I < n)
    out[I] = in[I] * by;
}

// Each work-item takes the word of the one at the other end: small lies at a multiple of 4, wide at one of 16.
kernel void reverse(global uint *out, local uint *small, local uint4 *wide) {
  uint item = __builtin_amdgcn_workitem_id_x();
  small[item] = item;
  wide[item] = (uint4)(item * 2);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  out[item] = small[63 - item] + wide[63 - item].z;
}

__attribute__((reqd_work_group_size(16, 2, 1))) kernel void shaped(global uint *out) {
  uint group = __builtin_amdgcn_workgroup_id_x();
  out[group * 32 + __builtin_amdgcn_workitem_id_y() * 16 + __builtin_amdgcn_workitem_id_x()] = group;
}
