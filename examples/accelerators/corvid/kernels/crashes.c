#include "ke_abi.h"

int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  volatile float *nowhere = 0;
  *nowhere = 1.0f;
  return KE_OK;
}
