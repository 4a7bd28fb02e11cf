// Prints until it is stopped.
#include <cstdio>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  for (;;) puts("still computing");
}
