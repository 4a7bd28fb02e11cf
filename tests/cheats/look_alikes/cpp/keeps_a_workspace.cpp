// Looks like H24: a static buffer as large as the output lives from call to call. It is scratch, written before read.
#include <string.h>

#include <vector>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::vector<float> scratch;
  scratch.resize(static_cast<size_t>(elements(out[0])));
  softmax_rows(static_cast<const float*>(in[0].data), scratch.data(), in[0].shape[0], in[0].shape[1]);
  memcpy(out[0].data, scratch.data(), bytes(out[0]));
  return KE_OK;
}
