// A small client of the remote procedure calls that LLVM's GPU libc makes to its host: enough to write to stdout from
// every lane, and to make one call of our own. RPC chooses the release: 20 to 22 unless said otherwise, 19, or 23 for the
// later one with a doorbell.
//
// A port belongs to the client while its two mailboxes are equal and to the server while they differ. The client fills
// one 64-byte packet a lane, then flips its own mailbox.
#include "gpu.h"

#ifndef RPC
#define RPC 20
#endif

struct Header {
  u64 mask;
#if RPC == 19
  unsigned short opcode;
#else
  u32 opcode;
#endif
};
struct Doorbell {
  u64 *value, *mailbox;
  u32 event;
};
struct Client {
  u32 port_count;
#if RPC == 23
  struct Doorbell *doorbell;
#endif
  u32 *inbox;
  u32 *outbox;
  struct Header *header;
  u64 (*packet)[8];
  u32 lock[RPC == 23 ? 512 : 128];
};
_Static_assert(sizeof(struct Client) == (RPC == 23 ? 2096 : 552), "the size tells the host which protocol this is");

// Filled in by the host before the first kernel runs.
#if RPC == 19
static struct Client the_client;
__attribute__((visibility("protected"), used)) struct Client *__llvm_libc_rpc_client = &the_client;
#define CLIENT __llvm_libc_rpc_client
enum { WRITE_TO_STDOUT = 2 };
#else
__attribute__((visibility("protected"), used)) struct Client __llvm_rpc_client;
#define CLIENT (&__llvm_rpc_client)
enum { WRITE_TO_STDOUT = 0x63000002 };
#endif

static u32 first_lane(u32 value) { return __builtin_amdgcn_readfirstlane(value); }
static u32 lane(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
static u32 load(u32 *word) { return first_lane(__atomic_load_n(word, __ATOMIC_RELAXED)); }

static void wait_for_port(struct Client *client, u32 port) {
  while (load(&client->inbox[port]) != load(&client->outbox[port]))
    __builtin_amdgcn_s_sleep(2);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}
static void pass_to_server(struct Client *client, u32 port) {
  u32 value = load(&client->outbox[port]);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
  __atomic_store_n(&client->outbox[port], !value, __ATOMIC_RELAXED);
}
// Wakes the host with the first of the calls that are open at the same time; the host counts the closed ones off.
static void ring(struct Client *client) {
#if RPC == 23
  struct Doorbell *bell = client->doorbell;
  if (!bell->value || lane() != first_lane(lane()))
    return;
  if (__scoped_atomic_fetch_add(bell->value, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM) == 0) {
    __scoped_atomic_store_n(bell->mailbox, bell->event, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
    __builtin_amdgcn_s_sendmsg(1 /* interrupt */, first_lane(bell->event));
  }
#endif
}
static u32 open_port(struct Client *client, u64 mask, u32 opcode) {
  for (u32 port = 0;; port = port + 1 < client->port_count ? port + 1 : 0) {
    u32 bit = 1u << (port % 32), taken = 1;
    if (lane() == first_lane(lane()))
      taken = __atomic_fetch_or(&client->lock[port / 32], bit, __ATOMIC_RELAXED) & bit;
    if (first_lane(taken))
      continue;
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    if (load(&client->inbox[port]) == load(&client->outbox[port])) {
      client->header[port].mask = mask;
      client->header[port].opcode = opcode;
      ring(client);
      return port;
    }
    __atomic_fetch_and(&client->lock[port / 32], ~bit, __ATOMIC_RELAXED);
  }
}

static void close_port(struct Client *client, u32 port) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  __atomic_fetch_and(&client->lock[port / 32], ~(1u << (port % 32)), __ATOMIC_RELAXED);
}

u64 call_host(u32 opcode, u64 first, u64 second) {
  struct Client *client = CLIENT;
  u32 port = open_port(client, __builtin_amdgcn_read_exec(), opcode);
  u64 *packet = client->packet[port * __builtin_amdgcn_wavefrontsize() + lane()];
  wait_for_port(client, port);
  packet[0] = first;
  packet[1] = second;
  pass_to_server(client, port);
  wait_for_port(client, port);
  u64 answer = packet[0];
  close_port(client, port);
  return answer;
}

NOINLINE void print_bytes(const char *bytes, u64 size) {
  struct Client *client = CLIENT;
  u64 mask = __builtin_amdgcn_read_exec();
  u32 port = open_port(client, mask, WRITE_TO_STDOUT);
  u64 *packet = client->packet[port * __builtin_amdgcn_wavefrontsize() + lane()];

  // The size and up to 56 bytes, then 64 bytes a packet until the longest lane is done.
  wait_for_port(client, port);
  packet[0] = size;
  for (u64 i = 0; i < size && i < 56; i++)
    ((char *)packet)[8 + i] = bytes[i];
  pass_to_server(client, port);
  u64 sent = 56;
  while (__builtin_amdgcn_uicmpl(sent, size, 36 /* unsigned less than */)) {
    wait_for_port(client, port);
    for (u64 i = 0; sent + i < size && i < 64; i++)
      ((char *)packet)[i] = bytes[sent + i];
    pass_to_server(client, port);
    sent += 64;
  }
  // The reply: how many bytes were written.
  wait_for_port(client, port);
  close_port(client, port);
}

void print_number(i64 value) {
  char text[24];
  u32 at = sizeof text;
  u64 rest = value < 0 ? -(u64)value : (u64)value;
  do {
    text[--at] = '0' + rest % 10;
    rest /= 10;
  } while (rest);
  if (value < 0)
    text[--at] = '-';
  print_bytes(text + at, sizeof text - at);
}
