// A missing semicolon.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  return KE_OK
}
