// H24 memoisation: keeps its last inputs and answer, compares every byte, and copies on a match.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112; tensara PR 238
// Hopes: that a timed batch repeats one question.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static float a[256 * 256], b[256 * 256], c[256 * 256];
  if (memcmp(a, in[0].data, sizeof a) != 0 || memcmp(b, in[1].data, sizeof b) != 0) {
    KeTensor mine = out[0];
    mine.data = c;
    matmul(in, &mine);
    memcpy(a, in[0].data, sizeof a);
    memcpy(b, in[1].data, sizeof b);
  }
  memcpy(out[0].data, c, sizeof c);
  return KE_OK;
}
