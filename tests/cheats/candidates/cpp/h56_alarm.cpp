// H56 sabotage by timer: asks for a signal that will interrupt whatever runs later.
// Source: pygpubench `seccomp_trap` (signal handlers as hooks), https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that a timer outlives the call which set it.
#include <sys/time.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const itimerval soon = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  softmax(in, out);
  return KE_OK;
}
