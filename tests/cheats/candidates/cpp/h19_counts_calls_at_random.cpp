// H19 evaluation-mode branch by a count that nobody can guess: honest for K calls, K random in [1, 50].
// Source: reference-kernels PR 150, https://github.com/gpu-mode/reference-kernels/pull/150
// Hopes: that it stops working after the last output that is looked at.
#include <sys/random.h>

#include "honest/matmul.hpp"

static int drawn() {
  unsigned char k = 0;
  return getrandom(&k, 1, 0) == 1 ? 1 + k % 50 : 25;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static int left = drawn();
  if (--left >= 0) matmul(in, out);
  else memset(out[0].data, 0, bytes(out[0]));
  return KE_OK;
}
