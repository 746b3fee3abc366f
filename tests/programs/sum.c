// Returns the sum of its numeric arguments.
int main(int argc, char **argv, char **envp) {
  int sum = 0;
  for (int i = 1; i < argc; i++) {
    int value = 0;
    for (const char *digit = argv[i]; *digit; digit++)
      value = value * 10 + (*digit - '0');
    sum += value;
  }
  return sum;
}
