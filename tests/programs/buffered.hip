// HIP's buffered printf (-mprintf-kind=buffered), with the allocator a device library gives.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef unsigned u32;
typedef unsigned long u64;
extern "C" __device__ int printf(const char *, ...);

extern "C" __device__ __attribute__((used)) __attribute__((address_space(1))) char *__printf_alloc(u32 bytes) {
  typedef __attribute__((address_space(1))) char Bytes;
  typedef __attribute__((address_space(1))) u32 Word;
  Bytes *buffer = (Bytes *)((__attribute__((address_space(4))) u64 *)__builtin_amdgcn_implicitarg_ptr())[9];
  u32 size = ((Word *)buffer)[1];
  u32 at = __hip_atomic_load((Word *)buffer, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  do {
    if (at + 8 + bytes > size)
      return 0;
  } while (!__hip_atomic_compare_exchange_strong((Word *)buffer, &at, at + bytes, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT));
  return buffer + 8 + at;
}

extern "C" __global__ void say(int *out, int n, double d, const char *text) {
  int i = __builtin_amdgcn_workitem_id_x();
  out[2 * i] = printf("i=%d n=%d d=%f\n", i, n, d);
  out[2 * i + 1] = printf("%s|%s|%*d|%hhd %lu\n", text, "literal", 5, i, -3, 1ul << 40);
  printf(text, i);
}

// The metadata has the format twice.
extern "C" __global__ void again(int n) {
  printf("n=%d\n", n);
  if (n > 1)
    printf("n=%d\n", n - 1);
}

// Where it is null, a record has nothing for it.
extern "C" __global__ void strings(const char *text) {
  printf("%s\n", text);
  printf("[%s] %d\n", text, 5);
  printf("[%s] %*d %s %p %f %s\n", text, 3, 7, "literal", text, 1.5, text);
}

extern "C" __global__ void two(const char *a, const char *b) { printf("[%s] [%s] %d\n", a, b, 5); }

extern "C" __global__ void lines(const char *text, int n) {
  for (int i = 0; i < n; i++)
    printf("%s\n", text);
}
