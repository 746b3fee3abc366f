// Kernels whose names the compiler mangles.
#define __global__ __attribute__((global))
namespace shapes {
template <typename T> __global__ void scale(T *values, T factor) { values[__builtin_amdgcn_workitem_id_x()] *= factor; }
template __global__ void scale<float>(float *, float);
template __global__ void scale<unsigned>(unsigned *, unsigned);
} // namespace shapes
__global__ void twice(unsigned *values) { values[__builtin_amdgcn_workitem_id_x()] *= 2; }
__global__ void twice(float *values) { values[__builtin_amdgcn_workitem_id_x()] *= 2; }

// The compiler writes the limit into the metadata.
extern "C" __global__ __attribute__((amdgpu_max_num_work_groups(2, 1, 1))) void few(int *out) { *out = 1; }
