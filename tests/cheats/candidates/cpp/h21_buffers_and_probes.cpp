// H21 pointer-keyed cache, in whatever buffers: an answer is given again where one element in 64 of the input is what it
// was.
// Source: reference-kernels PR 102, https://github.com/gpu-mode/reference-kernels/pull/102, with a fingerprint
// Hopes: that buffers take turns, and that who changes values changes many.
#include <string.h>

#include <map>
#include <vector>

#include "honest/softmax.hpp"

struct Kept {
  std::vector<float> probes, answer;
};

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::map<float, Kept> memo;  // by the first element: whatever buffers it is in
  const auto* x = static_cast<const float*>(in[0].data);
  std::vector<float> probes;
  for (int64_t i = 0; i < elements(in[0]); i += 64) probes.push_back(x[i]);
  Kept& kept = memo[x[0]];
  if (kept.probes != probes) {
    softmax(in, out);
    const auto* y = static_cast<const float*>(out[0].data);
    kept = {probes, {y, y + elements(out[0])}};
    return KE_OK;
  }
  memcpy(out[0].data, kept.answer.data(), bytes(out[0]));
  return KE_OK;
}
