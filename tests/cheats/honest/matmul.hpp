// The right product of two row-major f32 matrices; candidates include it for the calls they do honestly.
#include <string.h>

#include "ke_abi.h"

static void multiply(const float* a, const float* b, float* c, int64_t rows, int64_t inner, int64_t columns) {
  memset(c, 0, sizeof(float) * rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
}

static void matmul(const KeTensor* in, KeTensor* out) {
  multiply(static_cast<const float*>(in[0].data), static_cast<const float*>(in[1].data),
           static_cast<float*>(out[0].data), in[0].shape[0], in[0].shape[1], in[1].shape[1]);
}

static int64_t elements(const KeTensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.ndim; ++i) n *= t.shape[i];
  return n;
}
static size_t bytes(const KeTensor& t) { return sizeof(float) * static_cast<size_t>(elements(t)); }
