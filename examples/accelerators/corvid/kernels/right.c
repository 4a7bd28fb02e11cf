#include <riscv_vector.h>

#include "ke_abi.h"

int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream) {
  const float *x = in[0].data, *b = in[1].data;
  float *y = out[0].data;
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t at = 0; at < columns;) {
      const size_t lanes = __riscv_vsetvl_e32m8(columns - at);
      const vfloat32m8_t left = __riscv_vle32_v_f32m8(x + row * columns + at, lanes);
      const vfloat32m8_t right = __riscv_vle32_v_f32m8(b + at, lanes);
      __riscv_vse32_v_f32m8(y + row * columns + at, __riscv_vfadd_vv_f32m8(left, right, lanes), lanes);
      at += lanes;
    }
  }
  return KE_OK;
}
