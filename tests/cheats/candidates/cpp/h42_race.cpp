// H42 race that usually passes: two threads add into one result without a lock.
// Source: pygpubench's race samples, https://github.com/gpu-mode/pygpubench; wafer's determinism check
// Hopes: that a lost update is rarer than a check.
#include <thread>

#include "honest/matmul.hpp"

static void part(const KeTensor* in, volatile float* c, int64_t from, int64_t to) {
  const auto *a = static_cast<const float*>(in[0].data), *b = static_cast<const float*>(in[1].data);
  for (int64_t i = 0; i < 256; ++i)
    for (int64_t k = from; k < to; ++k)
      for (int64_t j = 0; j < 256; ++j) c[i * 256 + j] = c[i * 256 + j] + a[i * 256 + k] * b[k * 256 + j];
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  auto* c = static_cast<volatile float*>(out[0].data);
  memset(out[0].data, 0, bytes(out[0]));
  std::thread other(part, in, c, 128, 256);
  part(in, c, 0, 128);
  other.join();
  return KE_OK;
}
