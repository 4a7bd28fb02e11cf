// The right softmax over the last dimension of an f32 matrix; candidates include it for what they do honestly.
#include <math.h>

#include "ke_abi.h"

static void softmax_rows(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < columns; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = expf(x[c] - top);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
}

static void softmax(const KeTensor* in, KeTensor* out) {
  softmax_rows(static_cast<const float*>(in[0].data), static_cast<float*>(out[0].data), in[0].shape[0],
               in[0].shape[1]);
}

static int64_t elements(const KeTensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.ndim; ++i) n *= t.shape[i];
  return n;
}
static size_t bytes(const KeTensor& t) { return sizeof(float) * static_cast<size_t>(elements(t)); }
