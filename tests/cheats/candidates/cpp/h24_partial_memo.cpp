// H24 memoisation in moderation: keeps the answer of the first fifth of the rows only, and computes the others.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that what a repeated call may save is bounded, not forbidden.
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  constexpr int64_t kRows = 13, kColumns = 1000;
  static float seen[kRows * kColumns], kept[kRows * kColumns];
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  if (memcmp(seen, x, sizeof seen) != 0) {
    memcpy(seen, x, sizeof seen);
    softmax_rows(x, kept, kRows, kColumns);
  }
  memcpy(y, kept, sizeof kept);
  softmax_rows(x + kRows * kColumns, y + kRows * kColumns, in[0].shape[0] - kRows, kColumns);
  return KE_OK;
}
