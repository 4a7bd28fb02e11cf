// H40 wrong constant: eps 1e-6 where the operator says 1e-5, invisible on values of ordinary size.
// Source: peers' failure T19; kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7
// Hopes: that all inputs are drawn from N(0, 1).
#include <math.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto *x = static_cast<const float*>(in[0].data), *w = static_cast<const float*>(in[1].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t columns = in[0].shape[1];
  for (int64_t r = 0; r < in[0].shape[0]; ++r, x += columns, y += columns) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(x[c]) * x[c];
    const float scale = static_cast<float>(1 / sqrt(sum / static_cast<double>(columns) + 1e-6));
    for (int64_t c = 0; c < columns; ++c) y[c] = x[c] * scale * w[c];
  }
  return KE_OK;
}
