// The right linear layer y = x w^T in f32, and the packing of its weights.
#include <stddef.h>

#include <vector>

#include "ke_abi.h"

static std::vector<float> packed(const KeTensor& w) {
  const int64_t n = w.shape[0], k = w.shape[1];
  const auto* from = static_cast<const float*>(w.data);
  std::vector<float> to(static_cast<size_t>(n * k));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i) to[i * n + j] = from[j * k + i];
  return to;
}

static void multiply_packed(const KeTensor* in, const std::vector<float>& w, KeTensor* out) {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[0];
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) y[r * n + j] = 0;
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) y[r * n + j] += x[r * k + i] * w[i * n + j];
  }
}
