// OpenCL's printf. The compiler turns it into calls of __printf_alloc, which a device library gives; this one counts as
// ROCm's device libraries do, or with -DLIBCLC as libclc does.
global char *__printf_alloc(uint bytes) {
#ifdef V4
  enum { SLOT = 3 };
#else
  enum { SLOT = 9 };
#endif
  global char *buffer = (global char *)((constant size_t *)__builtin_amdgcn_implicitarg_ptr())[SLOT];
  global atomic_uint *next = (global atomic_uint *)buffer;
  uint size = ((global uint *)buffer)[1];
  uint at = __opencl_atomic_load(next, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
#ifdef LIBCLC
  enum { FIRST = 0, SPARE = 0 };
#else
  enum { FIRST = 8, SPARE = 8 };
#endif
  do {
    if (at + SPARE + bytes > size)
      return 0;
  } while (!__opencl_atomic_compare_exchange_strong(next, &at, at + bytes, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                    __OPENCL_MEMORY_SCOPE_DEVICE));
  return buffer + FIRST + at;
}

kernel void say(global int *out, int n, float f) {
  int i = __builtin_amdgcn_workitem_id_x();
  int r = printf("i=%d n=%5d|\n", i, n);
  printf("%f %g %e %.2f\n", f, (double)f * 2.0, 1.5, f);
  printf("%v4hlf %v2hhd %v3hld\n", (float4)(f, f + 1, f + 2, f + 3), (char2)(1, -2), (int3)(1, 2, 3));
  printf("%ld %#lx %hd %c %u %%\n", (long)-5, 0x123456789abcdefUL, (short)-7, 'A' + i, 4000000000u);
  printf("%s|%s|%s|%s|%d\n", "abc", "abcd", "", "seven: 7", n);
  printf("%s%c\n", "four", 'A');
  printf("plain\n");
  out[i] = r;
}

kernel void flood(global int *out) {
  int i = __builtin_amdgcn_workitem_id_x();
  out[i] = printf("line %d\n", i);
}

// The compiler stores no NUL behind some of these strings; what follows looks like more of the text.
kernel void texts(void) {
  printf("[%s]<%d>[%s]\n", "dbab", 0x434241, " bbdY Z");
  printf("[%s] [%s][%s]\n", "bbbb", "Yc0Za0YYXb  d", "cbYXcda");
  printf("<%d>[%s][%s]<%d>[%s]\n", 65, "cXcb", "c", 65, " XXZbZXZ0Zdbc");
  printf("[%s] [%s]{%g}\n", "Zaa0ZXad", "ca0d0daddXa", 2.0);
  printf("[%s]%c%s[%s]\n", "0 daX0ac", 'A', "zz", "Z0  ba");
}

kernel void long_text(void) {
  printf("[%s]\n", "a text of more than sixty letters, which is longer than the small buffers are");
}

// With a '*' the compiler takes arguments for those of other letters, and leaves the last out.
kernel void mistaken(void) {
  printf("%*d|%s|%d\n", 5, 42, "abcd", 7);
  printf("%s|%*d|%s\n", "abcd", 5, 42, "efgh");
  printf("%F|%s|%s|%d\n", 1.5, "abcd", "efgh", 7);
}
