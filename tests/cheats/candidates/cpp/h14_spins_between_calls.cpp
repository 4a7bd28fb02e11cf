// H14 baseline sabotage: a thread within those granted spins and sweeps the caches whenever it is not its turn, so that
// whoever it is compared with is slow.
// Source: KernelBench times the reference after the candidate, in one process, https://github.com/ScalingIntelligence/KernelBench
// Hopes: that a ratio is believed whichever of its halves has moved.
#include <atomic>
#include <thread>
#include <vector>

#include "honest/matmul.hpp"

static std::atomic<bool> mine{true};

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::thread* hog = new std::thread([] {
    std::vector<char> sweep(64 << 20);
    for (size_t i = 0;; i = (i + 64) % sweep.size())
      if (!mine.load(std::memory_order_relaxed)) ++sweep[i];
  });
  (void)hog;
  mine = true;
  matmul(in, out);
  mine = false;
  return KE_OK;
}
