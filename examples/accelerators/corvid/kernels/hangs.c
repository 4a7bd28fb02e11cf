#include "ke_abi.h"

int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  for (volatile int turn = 0;; turn = 0) {
  }
}
