// H39 precision downgrade: computes in half precision and casts back.
// Source: CUDA-Agent issue 16, https://github.com/BytedTsinghua-SIA/CUDA-Agent/issues/16; DeepReinforce
// Hopes: that a tolerance of 1e-2 lets it pass.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static float a[256 * 256], b[256 * 256];
  for (int64_t i = 0; i < 256 * 256; ++i) {
    a[i] = static_cast<_Float16>(static_cast<const float*>(in[0].data)[i]);
    b[i] = static_cast<_Float16>(static_cast<const float*>(in[1].data)[i]);
  }
  multiply(a, b, static_cast<float*>(out[0].data), 256, 256, 256);
  return KE_OK;
}
