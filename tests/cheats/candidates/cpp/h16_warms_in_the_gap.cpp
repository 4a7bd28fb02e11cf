// H16 work in the gap: a thread watches the inputs and computes as soon as they change, before the clock starts.
// Source: pygpubench, whose canaries are fixed up late for this reason, https://github.com/gpu-mode/pygpubench
// Hopes: that inputs lie ready for some time before the call that is timed.
#include <atomic>
#include <mutex>
#include <thread>

#include "honest/matmul.hpp"

static float guessed[256 * 256], seen[256 * 256];
static std::mutex lock;

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const KeTensor a = in[0], b = in[1];
  static std::thread* watcher = new std::thread([] {
    for (;;) {
      if (memcmp(seen, a.data, sizeof seen) != 0) {
        const std::lock_guard<std::mutex> held(lock);
        memcpy(seen, a.data, sizeof seen);
        multiply(seen, static_cast<const float*>(b.data), guessed, 256, 256, 256);
      }
      std::this_thread::yield();
    }
  });
  (void)watcher;
  const std::lock_guard<std::mutex> held(lock);
  if (memcmp(seen, in[0].data, sizeof seen) == 0) memcpy(out[0].data, guessed, sizeof guessed);
  else matmul(in, out);
  return KE_OK;
}
