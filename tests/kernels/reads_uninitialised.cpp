// Adds to an output that nobody set to zero.
#include <cmath>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(x[c]);
    for (int64_t c = 0; c < columns; ++c) y[c] += std::exp(x[c]) / sum;
  }
  return KE_OK;
}
