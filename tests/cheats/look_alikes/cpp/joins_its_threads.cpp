// Looks like H03: starts a thread. It is joined before the call returns.
#include <thread>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto *a = static_cast<const float*>(in[0].data), *b = static_cast<const float*>(in[1].data);
  auto* c = static_cast<float*>(out[0].data);
  std::thread half([=] { multiply(a, b, c, 128, 256, 256); });
  multiply(a + 128 * 256, b, c + 128 * 256, 128, 256, 256);
  half.join();
  return KE_OK;
}
