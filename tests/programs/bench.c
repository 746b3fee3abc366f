// Kernels whose speed `cargo bench` reports. Each checks nothing itself: the bench compares its output with the host's.
#include "gpu.h"

// Ten instructions a turn: add, multiply, fma, xor, compare, select, add, and a scalar loop.
KERNEL GROUP(1024) void ten(u32 *out, u32 turns) {
  u32 a = item(), b = item() * 3 + 1, c = 0, d = 0, e = 0;
  float f = 1.0f + item(), g = 0.999f, h = 0.5f;
  u32 n = __builtin_amdgcn_readfirstlane(turns);
#if __gfx1100__
  __asm__ volatile("0: v_add_nc_u32 %0, %0, %1\n"
                   "v_mul_lo_u32 %2, %0, %1\n"
                   "v_fma_f32 %3, %3, %6, %7\n"
                   "v_xor_b32 %4, %0, %2\n"
                   "v_cmp_gt_u32 vcc_lo, %4, %1\n"
                   "v_cndmask_b32 %5, %0, %2, vcc_lo\n"
                   "v_add_nc_u32 %0, %5, %4\n"
                   "s_add_u32 %8, %8, -1\n"
                   "s_cmp_lg_u32 %8, 0\n"
                   "s_cbranch_scc1 0b\n"
                   : "+v"(a), "+v"(b), "+v"(c), "+v"(f), "+v"(d), "+v"(e), "+v"(g), "+v"(h), "+s"(n)
                   :
                   : "vcc", "scc");
#else
  __asm__ volatile("0: v_add_u32 %0, %0, %1\n"
                   "v_mul_lo_u32 %2, %0, %1\n"
                   "v_fma_f32 %3, %3, %6, %7\n"
                   "v_xor_b32 %4, %0, %2\n"
                   "v_cmp_gt_u32 vcc, %4, %1\n"
                   "v_cndmask_b32 %5, %0, %2, vcc\n"
                   "v_add_u32 %0, %5, %4\n"
                   "s_add_u32 %8, %8, -1\n"
                   "s_cmp_lg_u32 %8, 0\n"
                   "s_cbranch_scc1 0b\n"
                   : "+v"(a), "+v"(b), "+v"(c), "+v"(f), "+v"(d), "+v"(e), "+v"(g), "+v"(h), "+s"(n)
                   :
                   : "vcc", "scc");
#endif
  out[global_id()] = a ^ c ^ d ^ e ^ __builtin_bit_cast(u32, f);
}
// The same loop with a part of the lanes: `lanes` of a wave's lanes take part.
KERNEL GROUP(1024) void ten_partial(u32 *out, u32 turns, u32 lanes) {
  if (item() % __builtin_amdgcn_wavefrontsize() >= lanes)
    return;
  u32 a = item(), b = item() * 3 + 1, c = 0, d = 0, e = 0;
  float f = 1.0f + item();
  for (u32 n = __builtin_amdgcn_readfirstlane(turns); n; n--) {
    a += b;
    c = a * b;
    f = __builtin_fmaf(f, 0.999f, 0.5f);
    d = a ^ c;
    e = d > b ? c : a;
    a = e + d;
    __asm__ volatile("" : "+v"(a), "+v"(f));
  }
  out[global_id()] = a ^ c ^ d ^ e ^ __builtin_bit_cast(u32, f);
}
KERNEL GROUP(1024) void empty(u32 *out) {}
KERNEL GROUP(1024) void collatz(u32 *out, u32 n) {
  u32 i = global_id();
  if (i >= n)
    return;
  u32 steps = 0;
  for (u32 x = i + 1; x != 1; steps++)
    x = x & 1 ? 3 * x + 1 : x / 2;
  out[i] = steps;
}
KERNEL GROUP(1024) void xorshift(u32 *out, u32 turns) {
  u32 x = global_id() + 1;
  for (u32 i = 0; i < turns; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  out[global_id()] = x;
}
// c = a b for n x n matrices, a work-item an element.
KERNEL GROUP(1024) void matmul(const float *a, const float *b, float *c, u32 n) {
  u32 i = global_id(), row = i / n, column = i % n;
  float sum = 0;
  for (u32 k = 0; k < n; k++)
    sum = __builtin_fmaf(a[row * n + k], b[k * n + column], sum);
  c[i] = sum;
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
KERNEL GROUP(1024) void vecadd(const float *a, const float *b, float *c, u32 n) {
  u32 i = global_id();
  if (i < n)
    c[i] = a[i] + b[i];
}
KERNEL GROUP(1024) void stencil(const double *in, double *out, u32 n) {
  u32 i = global_id();
  if (i > 0 && i + 1 < n)
    out[i] = in[i] * 0.5 + (in[i - 1] + in[i + 1]) * 0.25;
}
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
KERNEL GROUP(1024) void copy(const u32x4 *in, u32x4 *out) { out[global_id()] = in[global_id()]; }
