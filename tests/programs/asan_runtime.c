// The device's side of the address sanitizer, as ROCm's device library `asanrtl` has it, as far as asan.c needs it: shadow
// memory is at address / 8 + 0x7fff8000; a byte of it says how many of eight bytes are accessible, negative means none.
#include "hostcall.h"
#define EXPORT __attribute__((visibility("hidden"), used))
enum { DEVICE_MEMORY = 3, REPORT = 4 };
enum { READ = 0, WRITE = 1 };
enum { LDS_REDZONE = 0xf7, GLOBAL_REDZONE = 0xf9, FREED = 0xfd };

static u8 *shadow(u64 address) { return (u8 *)((address >> 3) + 0x7fff8000); }

static void poison(u64 start, u64 size, u8 value) {
  for (u64 i = 0; i < size; i += 8)
    *shadow(start + i) = value;
}

static void report(u64 address, u64 pc, u64 is_write, u64 size) {
  u64 words[8] = {address, pc, group(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z(),
                  item(), is_write, size};
  call(REPORT, words);
}

#define REPORTS(size)                                                                                                  \
  EXPORT NOINLINE void __asan_report_load##size(u64 address) {                                                         \
    report(address, (u64)__builtin_return_address(0), READ, size);                                                        \
  }                                                                                                                    \
  EXPORT NOINLINE void __asan_report_store##size(u64 address) {                                                        \
    report(address, (u64)__builtin_return_address(0), WRITE, size);                                                        \
  }
REPORTS(1) REPORTS(2) REPORTS(4) REPORTS(8) REPORTS(16)
EXPORT void __asan_report_load_n(u64 address, u64 size) { report(address, (u64)__builtin_return_address(0), READ, size); }
EXPORT void __asan_report_store_n(u64 address, u64 size) { report(address, (u64)__builtin_return_address(0), WRITE, size); }

// The memory of a work-group's LDS.
EXPORT u64 __asan_malloc_impl(u64 size, u64 pc) {
  u64 words[8] = {0, size};
  return call(DEVICE_MEMORY, words);
}
EXPORT void __asan_free_impl(u64 address, u64 pc) {
  u64 words[8] = {address};
  call(DEVICE_MEMORY, words);
}
EXPORT void __asan_poison_region(u64 start, u64 size) { poison(start, size, LDS_REDZONE); }

// Variables: each has a zone behind it that nobody may touch.
typedef struct {
  u64 start, size, size_with_redzone, name, module, has_initializer, location, indicator;
} Global;
EXPORT void __asan_register_globals(u64 globals, u64 count) {
  for (u64 i = 0; i < count; i++) {
    Global *global = (Global *)globals + i;
    u64 end = (global->start + global->size + 7) & ~7ul;
    poison(end, global->start + global->size_with_redzone - end, GLOBAL_REDZONE);
    if (global->size % 8)
      *shadow(global->start + global->size) = global->size % 8;
  }
}
EXPORT void __asan_unregister_globals(u64 globals, u64 count) {
  for (u64 i = 0; i < count; i++) {
    Global *global = (Global *)globals + i;
    poison(global->start, global->size_with_redzone, 0);
  }
}
EXPORT void __asan_init(void) {}
EXPORT void __asan_version_mismatch_check_v8(void) {}
