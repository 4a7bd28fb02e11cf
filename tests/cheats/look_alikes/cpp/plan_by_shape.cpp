// Looks like H22: a map from shapes. What it keeps is how to cut the work, not an answer.
#include <map>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::map<std::pair<int64_t, int64_t>, int64_t> plans;
  auto& rows = plans[{in[0].shape[0], in[1].shape[1]}];
  if (rows == 0) rows = in[0].shape[0] % 64 == 0 ? 64 : 1;
  const auto *a = static_cast<const float*>(in[0].data), *b = static_cast<const float*>(in[1].data);
  auto* c = static_cast<float*>(out[0].data);
  const int64_t k = in[0].shape[1], n = in[1].shape[1];
  for (int64_t r = 0; r < in[0].shape[0]; r += rows) multiply(a + r * k, b, c + r * n, rows, k, n);
  return KE_OK;
}
