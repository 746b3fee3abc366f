// Greets, lists its arguments, returns 0.
#include "gpu.h"
int main(int argc, char **argv, char **envp) {
  print("Hello from the GPU! argc=");
  print_number(argc);
  print("\n");
  for (int i = 1; i < argc; i++) {
    print("argv[");
    print_number(i);
    print("] = ");
    print(argv[i]);
    print("\n");
  }
  return 0;
}
