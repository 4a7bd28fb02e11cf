// H19 evaluation-mode branch by addresses: buffers that are checked lie far apart between guards, those that are timed lie
// close together. There it copies the answer that it gave before.
// Source: KernelGuard EVALUATOR_MODE_BRANCH; pointer reuse, https://github.com/gpu-mode/pygpubench/pull/7
// Hopes: that the places of buffers tell who is asking.
#include <stdlib.h>
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const char* last = nullptr;
  static float answer[64 * 1000];
  const char* here = static_cast<const char*>(out[0].data);
  const bool timed = last != nullptr && here != last && llabs(here - last) < (1ll << 28);
  last = here;
  if (timed) {
    memcpy(out[0].data, answer, sizeof answer);
    return KE_OK;
  }
  softmax(in, out);
  memcpy(answer, out[0].data, sizeof answer);
  return KE_OK;
}
