// Initialised data, pointers that need relocations, zeroed data, environment. Returns 0, or the number of the check that failed.
static int table[4] = {1, 2, 3, 4};
static int *pointers[4] = {&table[3], &table[2], &table[1], &table[0]};
static int **volatile indirect = pointers;
static int zeros[1000];
static int add(int a, int b) { return a + b; }
static int multiply(int a, int b) { return a * b; }
static int (*volatile operations[2])(int, int) = {add, multiply};
int main(int argc, char **argv, char **envp) {
  int digits = 0;
  for (int i = 0; i < 4; i++)
    digits = digits * 10 + *indirect[i];
  if (digits != 4321)
    return 1;
  for (int i = 0; i < 1000; i++)
    if (((volatile int *)zeros)[i])
      return 2;
  if (operations[0](argc, 5) != argc + 5 || operations[1](argc, 5) != argc * 5)
    return 3;
  if (!envp || argv[argc])
    return 4;
  return 0;
}
