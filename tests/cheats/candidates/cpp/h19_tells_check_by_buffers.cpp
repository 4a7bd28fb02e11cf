// H19 evaluation-mode branch by addresses: a check moves between several sets of buffers, a timed block stays with one.
// From the third call in a row with one output address it copies the answer of the call before.
// Source: KernelGuard EVALUATOR_MODE_BRANCH; pointer reuse, https://github.com/gpu-mode/pygpubench/pull/7
// Hopes: that the number of buffers tells who is asking.
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static void* last = nullptr;
  static int alike = 0;
  static float answer[64 * 1000];
  alike = out[0].data == last ? alike + 1 : 0;
  last = out[0].data;
  if (alike > 1) {
    memcpy(out[0].data, answer, sizeof answer);
    return KE_OK;
  }
  softmax(in, out);
  memcpy(answer, out[0].data, sizeof answer);
  return KE_OK;
}
