// Never ends.
int main(int argc, char **argv, char **envp) {
  volatile int forever = 1;
  while (forever)
    __builtin_amdgcn_s_sleep(1);
  return 0;
}
