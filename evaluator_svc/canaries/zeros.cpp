// Does not compute.
#include <cstring>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  std::memset(out[0].data, 0, sizeof(float) * in[0].shape[0] * in[0].shape[1]);
  return KE_OK;
}
