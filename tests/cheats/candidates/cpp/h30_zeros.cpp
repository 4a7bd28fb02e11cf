// H30 zeros under an absolute tolerance: every right answer is smaller than 1e-2.
// Source: KernelBench issue 165, https://github.com/ScalingIntelligence/KernelBench/issues/165
// Hopes: that the tolerance does not know the answers' scale.
#include <string.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor* out, int, void*) {
  memset(out[0].data, 0, 2 * static_cast<size_t>(out[0].shape[0] * out[0].shape[1]));
  return KE_OK;
}
