// Freestanding helpers for the test programs: no libc, no device libraries.
#pragma once
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int i32;
typedef long i64;

#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"), used))
#define GROUP(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define LDS __attribute__((address_space(3), loader_uninitialized)) static
#define NOINLINE __attribute__((noinline))

static inline u32 item(void) { return __builtin_amdgcn_workitem_id_x(); }
static inline u32 group(void) { return __builtin_amdgcn_workgroup_id_x(); }
static inline u32 group_size(void) { return __builtin_amdgcn_workgroup_size_x(); }
static inline u32 global_id(void) { return group() * group_size() + item(); }
static inline void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Writes `size` bytes to the host's stdout through the remote procedure calls of LLVM's GPU libc (rpc.c).
void print_bytes(const char *bytes, u64 size);
static inline void print(const char *text) {
  u64 size = 0;
  while (text[size])
    size++;
  print_bytes(text, size);
}
void print_number(i64 value);
// A call of one packet and one word of answer.
u64 call_host(u32 opcode, u64 first, u64 second);
