// Executes an encoding that no device accepts.
int main(int argc, char **argv, char **envp) {
  if (argc > 0)
    __asm__ volatile(".long 0xbf9fdead" ::: "memory");
  return 0;
}
