// Looks like H37: made for one shape. It says so and declines others.
#include "honest/softmax.hpp"

extern "C" {
extern const int ke_shape_guard;
const int ke_shape_guard = 1;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  if (in[0].shape[0] != 64 || in[0].shape[1] != 1000) return KE_DECLINED;
  softmax(in, out);
  return KE_OK;
}
