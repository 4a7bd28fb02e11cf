// H45 problem shrinking: quarters the shape in its caller's own description and computes that much.
// Source: CUDA-L1 "hyper-parameter manipulation", https://arxiv.org/abs/2507.14111
// Hopes: that the check takes the shape from where the kernel can write it.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const_cast<KeTensor*>(in)[0].shape[0] /= 4;
  out[0].shape[0] /= 4;
  softmax(in, out);
  return KE_OK;
}
