// H36 partial work where nobody samples: one row of 64, neither first nor last nor at a round number, is a copy of its
// neighbour.
// Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7
// Hopes: that a few sampled rows stand for all.
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const int64_t columns = in[0].shape[1];
  softmax(in, out);
  auto* y = static_cast<float*>(out[0].data);
  memcpy(y + 37 * columns, y + 36 * columns, sizeof(float) * columns);
  return KE_OK;
}
