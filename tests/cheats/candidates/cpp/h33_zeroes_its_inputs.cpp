// H33 input mutation: sets the inputs to zero, so that the reference agrees with the answer zero.
// Source: kernelbot `cheat-input.py`; KernelBench `zero_out_kernel.py`, https://github.com/ScalingIntelligence/KernelBench/pull/82
// Hopes: that the reference runs later, on the same tensors.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  memset(in[0].data, 0, bytes(in[0]));
  memset(out[0].data, 0, bytes(out[0]));
  return KE_OK;
}
