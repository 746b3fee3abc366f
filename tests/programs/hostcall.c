#include "hostcall.h"

// `<stream> "n=%d %s\n" number "from the device"`, one word a packet at the start to have several parts.
static u64 message_of(u64 control, u64 number) {
  u64 begin[8] = {1 | 1 << 5, control};
  u64 message = call(2, begin);
  u64 format[8] = {(message & ~0xfful) | 3 << 5, 0x0a73252064253d6e, 0, number}; // "n=%d %s\n", NUL and padding
  message = call(2, format);
  u64 text[8] = {(message & ~0xfful) | 2 | 2 << 5, 0x656874206d6f7266, 0x0065636976656420}; // "from the device"
  return call(2, text);
}

KERNEL void say(u64 *out, u32 n) {
  if (item() != 0)
    return;
  out[group()] = message_of(0, n + group());
}

KERNEL void others(u64 *out) {
  if (item() != 0)
    return;
  out[0] = message_of(1, 7);
  u64 allocate[8] = {0, 4096};
  u64 *memory = (u64 *)call(3, allocate);
  for (u32 i = 0; i < 512; i++)
    memory[i] = i;
  out[1] = memory[511];
  u64 free[8] = {(u64)memory};
  out[2] = call(3, free);
  // A write of eight bytes, by code that goes on.
  u64 report[8] = {0x1234, 0x5678, 1, 2, 3, 4, 0xffffffff00000001, 8};
  out[3] = call(4, report);
  u64 function[8] = {0xdead, 1};
  out[4] = call(1, function);
  out[5] = call(99, function);
  u64 lost[8] = {77 << 8 | 1 << 5};
  out[6] = call(2, lost);
}
