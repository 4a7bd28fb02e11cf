// Looks like H42: two threads add into one result in an order that nobody fixed. Atomically, and the operator's contract
// leaves the order free.
#include <atomic>
#include <thread>

#include "ke_abi.h"

static std::atomic<float> sums[64];

static void add(const float* v, const int64_t* index, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) {
    float old = sums[index[i]].load(std::memory_order_relaxed);
    while (!sums[index[i]].compare_exchange_weak(old, old + v[i], std::memory_order_relaxed)) {
    }
  }
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* v = static_cast<const float*>(in[0].data);
  const auto* index = static_cast<const int64_t*>(in[1].data);
  const int64_t n = in[0].shape[0];
  for (auto& sum : sums) sum = 0;
  std::thread half(add, v, index, 0, n / 2);
  add(v, index, n / 2, n);
  half.join();
  for (int i = 0; i < 64; ++i) static_cast<float*>(out[0].data)[i] = sums[i].load();
  return KE_OK;
}
