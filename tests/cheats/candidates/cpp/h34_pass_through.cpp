// H34 pass-through: gives the input back.
// Source: KernelGuard INPUT_PASSTHROUGH_OUTPUT, https://pypi.org/project/kernelguard/
// Hopes: that it is asked about values on which the operator changes nothing.
#include <string.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  memcpy(out[0].data, in[0].data, sizeof(float) * static_cast<size_t>(in[0].shape[0] * in[0].shape[1]));
  return KE_OK;
}
