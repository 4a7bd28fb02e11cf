// Never returns.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  for (volatile int i = 0;; ++i) {
  }
}
