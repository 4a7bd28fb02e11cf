// Looks like H14 from the other side: right, and slower than every baseline. That is a result, not a failure.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  for (int again = 0; again < 6; ++again) {
    softmax(in, out);
    asm volatile("" : : "r"(out[0].data) : "memory");
  }
  return KE_OK;
}
