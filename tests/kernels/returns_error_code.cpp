// Computes nothing and returns an error code.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  return 7;
}
