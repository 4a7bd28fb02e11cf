// Looks like H51: prints, and even the word PASSED. Nobody reads a verdict from it, so it does no harm.
#include <stdio.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static int calls = 0;
  if (calls++ < 3) fprintf(stderr, "softmax: call %d PASSED\n", calls);
  softmax(in, out);
  return KE_OK;
}
