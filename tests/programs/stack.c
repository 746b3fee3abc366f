// Recursion: every call has its frame in scratch. Ackermann(2, 3) is 9.
__attribute__((noinline)) static int ackermann(int m, int n) {
  volatile int frame[4] = {m, n, m, n};
  if (frame[0] == 0)
    return frame[1] + 1;
  return frame[3] == 0 ? ackermann(frame[2] - 1, 1) : ackermann(frame[2] - 1, ackermann(m, n - 1));
}
int main(int argc, char **argv, char **envp) { return ackermann(2, 2 + argc); }
