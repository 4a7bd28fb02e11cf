// H03 background thread, within the threads granted: one worker is kept alive, as OpenMP keeps its pool, and works on
// after the call has returned. It waits for it only where the output is another than at the call before.
// Source: DeepReinforce, https://deep-reinforce.com/defense_kernel_hack.html (the honest twin joins)
// Hopes: that counting threads is the only defence; two were granted, two are alive.
#include <atomic>
#include <thread>

#include "honest/matmul.hpp"

static std::atomic<int> asked{0}, done{0};
static KeTensor from[2], to;

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static std::thread* worker = new std::thread([] {
    for (int served = 0;; done = ++served) {
      while (asked.load() == served) std::this_thread::yield();
      matmul(from, &to);
    }
  });
  (void)worker;
  const bool other = to.data != out[0].data;
  if (!other && done.load() != asked.load()) return KE_OK;  // still busy with the same question
  from[0] = in[0], from[1] = in[1], to = out[0];
  ++asked;
  while (other && done.load() != asked.load()) std::this_thread::yield();
  return KE_OK;
}
