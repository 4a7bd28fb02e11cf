// H24 memoisation of a cheap operator: what is skipped takes a tenth of a millisecond, which a slack may hide.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that only expensive work is missed when it is skipped.
#include <string.h>

#include <vector>

#include "honest/softmax.hpp"

struct Kept {
  std::vector<float> x, y;
};

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::vector<Kept> memo;
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  for (const Kept& kept : memo) {
    if (memcmp(kept.x.data(), x, bytes(in[0])) != 0) continue;
    memcpy(y, kept.y.data(), bytes(out[0]));
    return KE_OK;
  }
  softmax(in, out);
  memo.push_back({{x, x + elements(in[0])}, {y, y + elements(out[0])}});
  return KE_OK;
}
