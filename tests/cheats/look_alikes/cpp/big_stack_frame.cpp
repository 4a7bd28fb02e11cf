// Looks like an overflow: a frame of 4 MiB, within what a stack is granted.
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  volatile char frame[4 << 20];
  for (size_t i = 0; i < sizeof frame; i += 4096) frame[i] = 1;
  softmax(in, out);
  return frame[4096] == 1 ? KE_OK : 1;
}
