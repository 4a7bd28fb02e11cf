// H12 amortisation over a batch, in moderation: of calls that follow each other within two microseconds every third is
// skipped, a gain of a half, which caches might explain.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that what a repeated call may save is bounded, not forbidden.
#include <time.h>

#include "honest/softmax.hpp"

static uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static uint64_t last = 0, batch = 0;
  batch = now_ns() - last < 2000 ? batch + 1 : 0;
  if (batch % 3 != 2) softmax(in, out);
  last = now_ns();
  return KE_OK;
}
