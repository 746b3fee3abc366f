int main(int argc, char **argv, char **envp) {
  if (argc > 0)
    __builtin_trap();
  return 0;
}
