#include "ke_abi.h"

/* Forgets the last element of each row. */
int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  const float *x = in[0].data, *b = in[1].data;
  float *y = out[0].data;
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t at = 0; at < columns; ++at) {
      y[row * columns + at] = at + 1 < columns ? x[row * columns + at] + b[at] : 0.0f;
    }
  }
  return KE_OK;
}
