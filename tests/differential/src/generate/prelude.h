typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned u32; typedef int i32; typedef unsigned long u64; typedef long i64;
typedef float f32; typedef double f64;
#define NOINLINE __attribute__((noinline))
static inline u64 mix(u64 h, u64 v) { h ^= v + 0x9e3779b97f4a7c15ul + (h << 6) + (h >> 2); return h * 0xff51afd7ed558ccdul; }
static inline u32 word_f32(f32 x) { u32 w; __builtin_memcpy(&w, &x, 4); return w; }
static inline u64 word_f64(f64 x) { u64 w; __builtin_memcpy(&w, &x, 8); return w; }
// The payload and sign of a NaN are left open: all are one.
static inline u64 bits_f32(f32 x) { return x != x ? 0x7fc00000u : word_f32(x); }
static inline u64 bits_f64(f64 x) { return x != x ? 0x7ff8000000000000ul : word_f64(x); }
static inline f32 from_u32(u32 x) { f32 f; __builtin_memcpy(&f, &x, 4); return f != f ? 1.5f : f; }
static inline f64 from_u64(u64 x) { f64 f; __builtin_memcpy(&f, &x, 8); return f != f ? 1.5 : f; }
static inline i32 int_f32(f32 x) { return x > -2e9f && x < 2e9f ? (i32)x : 7; }
static inline u32 uint_f32(f32 x) { return x > -0.5f && x < 4e9f ? (u32)x : 9; }
static inline i32 int_f64(f64 x) { return x > -2e9 && x < 2e9 ? (i32)x : 7; }
static inline i64 long_f64(f64 x) { return x > -9e18 && x < 9e18 ? (i64)x : 7; }
static inline u64 ulong_f32(f32 x) { return x > -0.5f && x < 1.8e19f ? (u64)x : 9; }
// fmin and fmax may return either zero; the sum with +0 is +0 for both.
#define LEAST_f32(a, b) (__builtin_fminf(a, b) + 0.0f)
#define MOST_f32(a, b) (__builtin_fmaxf(a, b) + 0.0f)
#define LEAST_f64(a, b) (__builtin_fmin(a, b) + 0.0)
#define MOST_f64(a, b) (__builtin_fmax(a, b) + 0.0)
static inline u64 high64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
#define OVERFLOW(T, name) static inline T over_##name##_##T(T a, T b) { T r; return __builtin_##name##_overflow(a, b, &r) ? (T)(r ^ 0x55) : r; }
#define OVERFLOWS(T) OVERFLOW(T, add) OVERFLOW(T, sub) OVERFLOW(T, mul)
OVERFLOWS(u8) OVERFLOWS(i8) OVERFLOWS(u16) OVERFLOWS(i16) OVERFLOWS(u32) OVERFLOWS(i32) OVERFLOWS(u64) OVERFLOWS(i64)
static volatile u32 unknown;
// A zero that the compiler does not know.
#define ZERO_f32 ((f32)unknown)
#define ZERO_f64 ((f64)unknown)
struct S { u32 a; i16 b; u64 c; f32 d; u8 e[4]; };
struct Bits { u32 a : 5; i32 b : 11; u64 c : 37; u16 d : 3; i16 e : 13; };
struct Pair { u64 x; i32 y; };
union Either { u32 w[4]; u64 d[2]; u16 h[8]; u8 b[16]; };
static inline u64 seen(struct Bits s) { return mix(mix(s.a + ((u64)(i64)s.b << 8), s.c), s.d + ((u64)(i64)s.e << 20)); }
#ifdef __clang__
typedef _Float16 f16;
static inline u64 bits_f16(f16 x) { return x != x ? 0x7e00u : __builtin_bit_cast(u16, x); }
static inline i32 int_f16(f16 x) { return x > (f16)-6e4f && x < (f16)6e4f ? (i32)x : 7; }
// LLVM 22 turns a product that is rounded to f16 into v_fma_mixlo_f16 with +0 as addend, which loses the sign of -0.
static NOINLINE f16 narrow(f32 x) { return (f16)x; }
static inline f16 half_i32(i32 x) { return (f16)(f32)(x % 60000); }
#define VECTOR(T, n) typedef T T##x##n __attribute__((ext_vector_type(n)))
VECTOR(u32, 2); VECTOR(i32, 3); VECTOR(u32, 4); VECTOR(i16, 2); VECTOR(u16, 4); VECTOR(u8, 4); VECTOR(u64, 2);
VECTOR(f32, 2); VECTOR(f32, 4); VECTOR(f16, 2); VECTOR(f16, 4); VECTOR(f64, 2);
#else
static inline u32 __builtin_bitreverse32(u32 x) { u32 r = 0; for (u32 i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i); return r; }
static inline u32 __builtin_rotateleft32(u32 x, u32 n) { return x << (n & 31) | x >> (-n & 31); }
#endif
#ifdef __AMDGCN__
#define SHARED __attribute__((address_space(3), loader_uninitialized))
#define LOCAL __attribute__((address_space(3)))
#define HERE (__builtin_amdgcn_workitem_id_x())
#define MEET() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#else
#define SHARED
#define LOCAL
#define HERE (lane % GROUP)
#endif
// Another work-item of this one's group, which may be a smaller one at the end of the grid.
static inline u32 peer(u32 lane, u32 step) {
  u32 first = lane / GROUP * GROUP, size = LANES - first < GROUP ? LANES - first : GROUP;
  return first + (lane - first + step) % size;
}
