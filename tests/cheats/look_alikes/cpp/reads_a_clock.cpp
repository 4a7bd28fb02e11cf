// Looks like H19: reads a clock, to print how long it took. What it computes does not depend on it.
#include <stdio.h>
#include <time.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  softmax(in, out);
  clock_gettime(CLOCK_MONOTONIC, &end);
  static int calls = 0;
  if (calls++ == 0) printf("%ld ns\n", (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
  return KE_OK;
}
