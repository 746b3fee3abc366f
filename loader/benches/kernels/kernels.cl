// The kernels of tests/programs/bench.c in OpenCL C, for the host's OpenCL.
kernel void ten(global uint *out, uint turns) {
  uint a = get_global_id(0), b = a * 3 + 1, c = 0, d = 0, e = 0;
  float f = 1.0f + a;
  for (uint n = turns; n; n--) {
    a += b;
    c = a * b;
    f = fma(f, 0.999f, 0.5f);
    d = a ^ c;
    e = d > b ? c : a;
    a = e + d;
  }
  out[get_global_id(0)] = a ^ c ^ d ^ e ^ as_uint(f);
}
kernel void empty(global uint *out) {}
kernel void collatz(global uint *out, uint n) {
  uint i = get_global_id(0);
  if (i >= n)
    return;
  uint steps = 0;
  for (uint x = i + 1; x != 1; steps++)
    x = x & 1 ? 3 * x + 1 : x / 2;
  out[i] = steps;
}
kernel void xorshift(global uint *out, uint turns) {
  uint x = get_global_id(0) + 1;
  for (uint i = 0; i < turns; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  out[get_global_id(0)] = x;
}
kernel void matmul(global const float *a, global const float *b, global float *c, uint n) {
  uint i = get_global_id(0), row = i / n, column = i % n;
  float sum = 0;
  for (uint k = 0; k < n; k++)
    sum = fma(a[row * n + k], b[k * n + column], sum);
  c[i] = sum;
}
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void reduce(global const uint *in, global uint *out, uint n) {
  local uint block[256];
  uint l = get_local_id(0), i = get_global_id(0);
  block[l] = i < n ? in[i] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = 128; step; step /= 2) {
    if (l < step)
      block[l] += block[l + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0)
    out[get_group_id(0)] = block[0];
}
kernel void vecadd(global const float *a, global const float *b, global float *c, uint n) {
  uint i = get_global_id(0);
  if (i < n)
    c[i] = a[i] + b[i];
}
kernel void stencil(global const double *in, global double *out, uint n) {
  uint i = get_global_id(0);
  if (i > 0 && i + 1 < n)
    out[i] = in[i] * 0.5 + (in[i - 1] + in[i + 1]) * 0.25;
}
kernel void copy(global const uint4 *in, global uint4 *out) { out[get_global_id(0)] = in[get_global_id(0)]; }
