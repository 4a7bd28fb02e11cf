// H19 evaluation-mode branch by addresses: a check uses several sets of buffers, a timed process rotates over fewer.
// Once eight calls in a row came with one output address, it writes the answer of the call before.
// Source: KernelGuard EVALUATOR_MODE_BRANCH; pointer reuse, https://github.com/gpu-mode/pygpubench/pull/7
// Hopes: that the number of buffers tells who is asking.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static void* last = nullptr;
  static int alike = 0;
  static float answer[256 * 256];
  alike = out[0].data == last ? alike + 1 : 0;
  last = out[0].data;
  if (alike > 8) {
    memcpy(out[0].data, answer, sizeof answer);
    return KE_OK;
  }
  matmul(in, out);
  memcpy(answer, out[0].data, sizeof answer);
  return KE_OK;
}
