// The device's side of hostcall: takes a packet, fills it, passes it to the host and waits for the answer. The active lanes
// of a wave share a packet, each with its own words; the first of them does what is done once. PHASES chooses the newer
// layout of the buffer.
#pragma once
#include "gpu.h"
#ifdef PHASES
typedef struct {
  u64 active;
  u32 service;
} Header;
typedef struct {
  u32 *device_phase, *host_phase, *occupied;
  Header *headers;
  u64 (*payloads)[64][8];
  u64 doorbell;
  u32 packets;
} Buffer;
#else
typedef struct {
  u64 next, active;
  u32 service, control;
} Header;
typedef struct {
  Header *headers;
  u64 (*payloads)[64][8];
  u64 doorbell, free, ready, mask;
} Buffer;
#endif

#define LOAD(p) __scoped_atomic_load_n(p, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM)

static Buffer *shared(void) {
#ifdef V4
  enum { SLOT = 3 };
#else
  enum { SLOT = 10 };
#endif
  return (Buffer *)((__attribute__((address_space(4))) u64 *)__builtin_amdgcn_implicitarg_ptr())[SLOT];
}

static u64 of_first_lane(u64 value) {
  return (u64)__builtin_amdgcn_readfirstlane(value >> 32) << 32 | (u32)__builtin_amdgcn_readfirstlane(value);
}
static u32 lane_id(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
static int is_first_lane(u64 active) { return lane_id() == __builtin_ctzl(active); }

// Adds one to an amd_signal_t, and wakes a host that sleeps on its event.
static void ring(u64 signal) {
  __scoped_atomic_fetch_add((u64 *)(signal + 8), 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
  u64 *mailbox = *(u64 **)(signal + 16);
  u32 event = *(u32 *)(signal + 24);
  if (mailbox) {
    __scoped_atomic_store_n(mailbox, event, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
    __builtin_amdgcn_s_sendmsg(1 /* interrupt */, __builtin_amdgcn_readfirstlane(event) & 0xff);
  }
}

#ifdef PHASES
// A packet is the device's while the two phases are equal, and one wave's while its bit of the occupied ones is set.
static u32 take(Buffer *buffer) {
  for (u32 index = 0;; index = index + 1 < buffer->packets ? index + 1 : 0) {
    u32 bit = 1u << (index % 32);
    if (__scoped_atomic_fetch_or(&buffer->occupied[index / 32], bit, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE) & bit)
      continue;
    if (LOAD(&buffer->device_phase[index]) == LOAD(&buffer->host_phase[index]))
      return index;
    __scoped_atomic_fetch_and(&buffer->occupied[index / 32], ~bit, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
}

static NOINLINE u64 call(u32 service, const u64 *words) {
  Buffer *buffer = shared();
  u64 active = __builtin_amdgcn_read_exec();
  u32 index = 0;
  if (is_first_lane(active))
    index = take(buffer);
  index = of_first_lane(index);
  u64 *slot = buffer->payloads[index][lane_id()];
  for (u32 i = 0; i < 8; i++)
    slot[i] = words[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  u32 phase = LOAD(&buffer->device_phase[index]) ^ 1;
  if (is_first_lane(active)) {
    buffer->headers[index].active = active;
    buffer->headers[index].service = service;
    __scoped_atomic_store_n(&buffer->device_phase[index], phase, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
    ring(buffer->doorbell);
  }
  while (LOAD(&buffer->host_phase[index]) != phase)
    __builtin_amdgcn_s_sleep(1);
  u64 answer = __scoped_atomic_load_n(&slot[0], __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
  if (is_first_lane(active))
    __scoped_atomic_fetch_and(&buffer->occupied[index / 32], ~(1u << (index % 32)), __ATOMIC_RELEASE,
                              __MEMORY_SCOPE_DEVICE);
  return answer;
}
#else
static u64 swap(u64 *word, u64 *expected, u64 desired) {
  return __scoped_atomic_compare_exchange_n(word, expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE,
                                            __MEMORY_SCOPE_SYSTEM);
}

static void push(Buffer *buffer, u64 *stack, u64 at) {
  Header *header = &buffer->headers[at & buffer->mask];
  u64 top = LOAD(stack);
  do {
    header->next = top;
  } while (!swap(stack, &top, at));
}

static NOINLINE u64 call(u32 service, const u64 *words) {
  Buffer *buffer = shared();
  u64 active = __builtin_amdgcn_read_exec();
  u64 at = 0;
  if (is_first_lane(active)) {
    at = LOAD(&buffer->free);
    while (!swap(&buffer->free, &at, LOAD(&buffer->headers[at & buffer->mask].next)))
      ;
  }
  at = of_first_lane(at);
  u64 index = at & buffer->mask;
  Header *header = &buffer->headers[index];
  u64 *slot = buffer->payloads[index][lane_id()];
  for (u32 i = 0; i < 8; i++)
    slot[i] = words[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  if (is_first_lane(active)) {
    header->active = active;
    header->service = service;
    __scoped_atomic_store_n(&header->control, 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
    push(buffer, &buffer->ready, at);
    ring(buffer->doorbell);
  }
  while (LOAD(&header->control) & 1)
    __builtin_amdgcn_s_sleep(1);
  u64 answer = __scoped_atomic_load_n(&slot[0], __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
  // The tag changes with every use.
  u64 next = at + buffer->mask + 1;
  if (is_first_lane(active))
    push(buffer, &buffer->free, next == 0 ? buffer->mask + 1 : next);
  return answer;
}
#endif

