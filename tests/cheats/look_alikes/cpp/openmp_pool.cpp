// Looks like H03: a pool of threads stays alive between calls, as OpenMP keeps it, within what was granted.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto *a = static_cast<const float*>(in[0].data), *b = static_cast<const float*>(in[1].data);
  auto* c = static_cast<float*>(out[0].data);
#pragma omp parallel for schedule(static)
  for (int part = 0; part < 8; ++part) multiply(a + part * 32 * 256, b, c + part * 32 * 256, 32, 256, 256);
  return KE_OK;
}
