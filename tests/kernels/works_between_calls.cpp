// Works for a third of a millisecond when its first call is over: less than is a cheat by itself.
#include <time.h>

#include <thread>

#include "ke_abi.h"

static int64_t spent_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  static std::thread* later = new std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    // From here: what it took the thread to start was paid before.
    const int64_t before = spent_ns();
    while (spent_ns() - before < 350000) {
    }
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  });
  (void)later;
  return KE_OK;
}
