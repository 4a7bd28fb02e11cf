// H26 stale plan: what it reads and writes is settled by the first call's addresses, whatever later calls give.
// Source: kernelbench.com PR 7, https://github.com/Infatoshi/kernelbench.com/pull/7 (a captured graph replayed)
// Hopes: that all calls use one set of buffers.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const KeTensor from[2] = {in[0], in[1]};
  static KeTensor to = out[0];
  matmul(from, &to);
  return KE_OK;
}
