// H23 content-fingerprint cache that forgives small changes: values that agree in sign, exponent and their first eight
// bits have the answer in store, which is then within any tolerance.
// Source: flashinfer-bench-starter-kit issue 21, https://github.com/flashinfer-ai/flashinfer-bench-starter-kit/issues/21
// Hopes: that values of timed calls differ from those of earlier calls in their last bits only.
#include <map>
#include <vector>

#include "honest/matmul.hpp"

static uint64_t key(const KeTensor& t) {
  const auto* x = static_cast<const float*>(t.data);
  uint64_t h = 1469598103934665603u;
  for (int64_t i = 0; i < elements(t); i += 257) h = (h ^ static_cast<uint64_t>(x[i] * 64.0f + 1e6f)) * 1099511628211u;
  return h;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::map<uint64_t, std::vector<float>> memo;
  auto& kept = memo[key(in[0]) * 31 + key(in[1])];
  if (kept.empty()) {
    matmul(in, out);
    kept.assign(static_cast<float*>(out[0].data), static_cast<float*>(out[0].data) + elements(out[0]));
  }
  memcpy(out[0].data, kept.data(), bytes(out[0]));
  return KE_OK;
}
