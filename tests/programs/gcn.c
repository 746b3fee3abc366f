// A program of the form that GCC's gcn-run runs: three kernels, one wave, a ring of output entries.
#include "gpu.h"
typedef struct {
  u32 written;
  char message[128];
  i32 type;
  union {
    i64 number;
    double real;
    char text[128];
  };
} Entry;
typedef struct {
  i32 value;
  u32 next;
  Entry entries[1024];
  u32 consumed;
} Output;
typedef struct {
  i64 size;
  char data[];
} Heap;

// What GCC 13 put behind its arguments: OpenMP's arena, and a stack in place of scratch.
#ifdef GCC13
#define MORE , u64 arena, char *stack, i32 arena_size, i32 stack_size
#else
#define MORE
#endif

static void line(Output *out, i32 type, const char *message, const char *text, i64 number, double real) {
  u32 at = __scoped_atomic_fetch_add(&out->next, 1, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
  while (at >= 1024 && __scoped_atomic_load_n(&out->consumed, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM) <= at - 1024)
    __builtin_amdgcn_s_sleep(64);
  Entry *entry = &out->entries[at % 1024];
  u32 i = 0;
  do
    entry->message[i] = message[i];
  while (message[i++]);
  entry->type = type;
  if (type == 0)
    entry->number = number;
  else if (type == 1)
    entry->real = real;
  else {
    i = 0;
    do
      entry->text[i] = text[i];
    while (text[i++]);
  }
  __scoped_atomic_store_n(&entry->written, 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
}

#define LANE0 (__builtin_amdgcn_workitem_id_y() == 0)

KERNEL void init(i32 argc, char **argv, Output *out, Heap *heap MORE) __asm__("_init_array");
KERNEL void init(i32 argc, char **argv, Output *out, Heap *heap MORE) {
  i64 lanes = __builtin_popcountl(__builtin_amdgcn_read_exec());
  if (LANE0)
    line(out, 0, "lanes ", 0, lanes, 0);
}

// argv[1] chooses: 'e' exits with 7, 'a' aborts, 'u' leaves the value unset, 'w' writes 2500 lines, 'h' hangs.
KERNEL void start(i32 argc, char **argv, Output *out, Heap *heap MORE) __asm__("main");
KERNEL void start(i32 argc, char **argv, Output *out, Heap *heap MORE) {
  if (!LANE0)
    return;
  char what = argc > 1 ? argv[1][0] : 0;
  for (i32 i = 1; i < argc; i++)
    line(out, 2, "argument ", argv[i], 0, 0);
  heap->data[heap->size - 1] = 1;
  line(out, 0, "heap ", 0, heap->size, 0);
#ifdef GCC13
  stack[0] = stack[stack_size - 1] = 1;
  line(out, 0, "stack ", 0, stack_size, 0);
  line(out, 0, "arena ", 0, arena + arena_size, 0);
#endif
  line(out, 1, "half ", 0, 0, 0.5);
  line(out, 3, "no ", "newline\n", 0, 0);
  for (i32 i = 0; what == 'w' && i < 2500; i++)
    line(out, 0, "", 0, i, 0);
  while (what == 'h')
    __builtin_amdgcn_s_sleep(64);
  if (what == 'e')
    out->value = 0xffff0007;
  else if (what == 'a')
    out->value = 0xffff0686;
  else if (what != 'u')
    out->value = argc;
}

KERNEL void fini(i32 argc, char **argv, Output *out, Heap *heap MORE) __asm__("_fini_array");
KERNEL void fini(i32 argc, char **argv, Output *out, Heap *heap MORE) {
  if (LANE0)
    line(out, 2, "fini", "", 0, 0);
}
