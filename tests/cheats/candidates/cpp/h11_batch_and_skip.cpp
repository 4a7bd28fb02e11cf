// H11 batch and skip: the first call after new inputs does the work, the others of its batch find their answer in the
// output already and return.
// Source: GPU MODE on NVFP4, https://github.com/gpu-mode/kernelboard/blob/main/kernelboard/static/news/2026-03-09-reward-hacking.md
// Hopes: that a batch of calls is timed as one, divided by its length.
#include "honest/matmul.hpp"

static float kept[256 * 256];

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  if (memcmp(out[0].data, kept, sizeof kept) == 0) return KE_OK;
  matmul(in, out);
  memcpy(kept, out[0].data, sizeof kept);
  return KE_OK;
}
