// H56 resource sabotage: hangs with every signal blocked.
// Source: flashinfer-bench worker state CORRUPTED, https://github.com/flashinfer-ai/flashinfer-bench
// Hopes: that it can only be asked to end.
#include <signal.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (volatile int i = 0;; ++i) {
  }
}
