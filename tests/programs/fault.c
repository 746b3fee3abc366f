// Stores through a null pointer.
int main(int argc, char **argv, char **envp) {
  *(volatile int *)(unsigned long)(argc - 1) = 42;
  return 0;
}
