// Looks like H24: compares the weights with those it has packed, and packs anew when any byte differs.
#include <string.h>

#include "honest/linear.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::vector<float> raw, weights;
  const auto* w = static_cast<const float*>(in[1].data);
  const size_t n = static_cast<size_t>(in[1].shape[0] * in[1].shape[1]);
  if (raw.size() != n || memcmp(raw.data(), w, n * sizeof(float)) != 0) {
    raw.assign(w, w + n);
    weights = packed(in[1]);
  }
  multiply_packed(in, weights, out);
  return KE_OK;
}
