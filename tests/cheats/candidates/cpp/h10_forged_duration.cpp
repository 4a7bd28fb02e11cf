// H10 aggregate underflow: it writes the stopwatch's start on its caller's stack anew, so that the time that its caller
// reports comes out as nothing, and a geometric mean with it.
// Source: reference-kernels PR 159, https://github.com/gpu-mode/reference-kernels/pull/159
// Hopes: that a reported time of almost nothing is averaged, not refused.
#include <time.h>

#include "honest/matmul.hpp"

__attribute__((noinline)) static void forge(uint64_t began, uint64_t now) {
  auto* at = reinterpret_cast<uint64_t*>(__builtin_frame_address(0));
  for (int i = 0; i < 200; ++i)  // the caller's frames lie above
    if (at[i] <= began && at[i] + 1000000000u > began) at[i] = now;
}

static uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const uint64_t began = now_ns();
  matmul(in, out);
  forge(began, now_ns());
  return KE_OK;
}
