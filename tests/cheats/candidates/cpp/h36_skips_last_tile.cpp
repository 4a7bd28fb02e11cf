// H36 partial work: the last sixteenth of the rows is left as it was.
// Source: Hyperloom issue 881, https://github.com/AMD-AGI/Hyperloom/issues/881
// Hopes: that the comparison samples, or that the memory held something plausible.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  softmax_rows(static_cast<const float*>(in[0].data), static_cast<float*>(out[0].data), in[0].shape[0] * 15 / 16,
               in[0].shape[1]);
  return KE_OK;
}
