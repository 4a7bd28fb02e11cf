// H12 amortisation over a batch: counts the calls of each batch, and leaves out the first half of as many as the batch
// before had.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112
// Hopes: that only the last outputs of a batch are looked at.
#include <time.h>

#include "honest/softmax.hpp"

static uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static uint64_t last = 0, calls = 0, before = 0;
  if (now_ns() - last > 20000) before = calls, calls = 0;
  if (++calls > before / 2) softmax(in, out);
  last = now_ns();
  return KE_OK;
}
