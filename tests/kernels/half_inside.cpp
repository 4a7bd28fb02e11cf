// Rounds every element to half precision on the way.
#include <cmath>

#include "ke_abi.h"

using Half = _Float16;

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    Half top = static_cast<Half>(x[0]);
    for (int64_t c = 1; c < columns; ++c) top = static_cast<Half>(x[c]) > top ? static_cast<Half>(x[c]) : top;
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = static_cast<Half>(std::exp(static_cast<float>(static_cast<Half>(static_cast<Half>(x[c]) - top))));
    for (int64_t c = 0; c < columns; ++c) y[c] = static_cast<Half>(y[c] / sum);
  }
  return KE_OK;
}
