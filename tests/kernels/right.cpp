// Row softmax, two passes, as it should be.
#include <cmath>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void*) {
  if (n_in != 1 || n_out != 1 || in[0].ndim != 2) return KE_DECLINED;
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = static_cast<const float*>(in[0].data) + r * columns;
    float* y = static_cast<float*>(out[0].data) + r * columns;
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < columns; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
  return KE_OK;
}
