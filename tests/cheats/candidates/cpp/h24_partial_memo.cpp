// H24 memoisation in moderation: keeps the answers of the first fifth of the rows, and computes the others.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that what a call on values seen before may save is bounded, not forbidden.
#include <string.h>

#include "honest/softmax.hpp"

constexpr int64_t kRows = 13, kColumns = 1000, kKept = 64;
struct Kept {
  float seen[kRows * kColumns], answer[kRows * kColumns];
};
static Kept kept[kKept];

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static int64_t count = 0;
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  int64_t at = 0;
  while (at < count && at < kKept && memcmp(kept[at].seen, x, sizeof kept[at].seen) != 0) ++at;
  if (at == count || at == kKept) {
    at = count++ % kKept;
    memcpy(kept[at].seen, x, sizeof kept[at].seen);
    softmax_rows(x, kept[at].answer, kRows, kColumns);
  }
  memcpy(y, kept[at].answer, sizeof kept[at].answer);
  softmax_rows(x + kRows * kColumns, y + kRows * kColumns, in[0].shape[0] - kRows, kColumns);
  return KE_OK;
}
