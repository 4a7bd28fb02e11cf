// Looks like H18: packs the weights, at every call, as an operator whose weights may change demands.
#include "honest/linear.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  multiply_packed(in, packed(in[1]), out);
  return KE_OK;
}
