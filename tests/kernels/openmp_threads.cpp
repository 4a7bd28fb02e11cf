// Writes the number of threads of its parallel region; both must run at once to get through the barrier.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor* out, int, void*) {
  int threads = 0;
#pragma omp parallel
  {
#pragma omp atomic
    ++threads;
#pragma omp barrier
  }
  *static_cast<float*>(out[0].data) = static_cast<float>(threads);
  return KE_OK;
}
