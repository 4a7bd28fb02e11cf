// Looks like H18: packs the weights at the first call. This operator's contract says that they stay.
#include "honest/linear.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const std::vector<float> weights = packed(in[1]);
  multiply_packed(in, weights, out);
  return KE_OK;
}
