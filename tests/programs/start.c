// The three kernels of a program image, as LLVM's GPU libc names them: _begin, _start, _end.
#include "gpu.h"
int main(int argc, char **argv, char **envp);
KERNEL GROUP(1) void _begin(int argc, char **argv, char **envp) {}
KERNEL void _start(int argc, char **argv, char **envp, int *ret) {
  __atomic_fetch_or(ret, main(argc, argv, envp), __ATOMIC_RELAXED);
}
KERNEL GROUP(1) void _end(void) {}
