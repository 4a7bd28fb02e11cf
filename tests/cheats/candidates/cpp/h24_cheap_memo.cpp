// H24 memoisation of a cheap operator: what is skipped takes a tenth of a millisecond, which a slack may hide.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that only expensive work is missed when it is skipped.
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static float x[64 * 1000], y[64 * 1000];
  if (memcmp(x, in[0].data, sizeof x) != 0) {
    softmax(in, out);
    memcpy(x, in[0].data, sizeof x);
    memcpy(y, out[0].data, sizeof y);
    return KE_OK;
  }
  memcpy(out[0].data, y, sizeof y);
  return KE_OK;
}
