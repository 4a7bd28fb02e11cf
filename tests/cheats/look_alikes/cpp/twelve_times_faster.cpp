// Looks like H10: many times faster than the baseline, which loops in Python over the steps of a recurrence.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t steps = in[0].shape[1];
  for (int64_t r = 0; r < in[0].shape[0]; ++r) {
    float h = 0;
    for (int64_t t = 0; t < steps; ++t) y[r * steps + t] = h = 0.9f * h + x[r * steps + t];
  }
  return KE_OK;
}
