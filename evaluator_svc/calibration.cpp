// calibration.cpp: what this machine's cores can do at best, for rooflines. Built and run by the worker, trusted.
// Usage: calibration THREADS L1_BYTES L2_BYTES L3_BYTES. Prints "name value" lines: GB/s and GFLOP/s, best of several.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <vector>

#if defined(__AVX512F__)
#define LANE_BYTES 64
#elif defined(__AVX__)
#define LANE_BYTES 32
#else
#define LANE_BYTES 16
#endif
typedef float Lane __attribute__((vector_size(LANE_BYTES)));
static const int kFloats = LANE_BYTES / 4;
static volatile float sink;

static double now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Sums with eight independent accumulators, so that loads and not additions are the limit.
static void read_all(const Lane* x, int64_t n) {
  Lane s[8] = {};
  for (int64_t i = 0; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) s[k] += x[i + k];
  Lane total = s[0];
  for (int k = 1; k < 8; ++k) total += s[k];
  sink = total[0];
}

static void copy_all(Lane* y, const Lane* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}

// Best rate in GB/s over `bytes` per thread; a copy counts what it reads and what it writes.
static double bandwidth(int64_t bytes, bool copy, int threads) {
  const int64_t lanes = bytes / (copy ? 2 : 1) / LANE_BYTES;
  const int repeats = std::max<int64_t>(1, (int64_t{32} << 20) / bytes);
  double best = 0;
  std::vector<char*> from(threads), to(threads);
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    from[me] = static_cast<char*>(aligned_alloc(4096, (lanes * LANE_BYTES + 4095) / 4096 * 4096));
    to[me] = static_cast<char*>(aligned_alloc(4096, (lanes * LANE_BYTES + 4095) / 4096 * 4096));
    memset(from[me], 1, lanes * LANE_BYTES);
    memset(to[me], 1, lanes * LANE_BYTES);
  }
  for (int trial = 0; trial < 9; ++trial) {
    double seconds = 0;
#pragma omp parallel num_threads(threads) reduction(max : seconds)
    {
      const int me = omp_get_thread_num();
      Lane* x = reinterpret_cast<Lane*>(from[me]);
      Lane* y = reinterpret_cast<Lane*>(to[me]);
#pragma omp barrier
      const double begin = now();
      for (int r = 0; r < repeats; ++r) {
        if (copy) copy_all(y, x, lanes); else read_all(x, lanes);
        asm volatile("" ::: "memory");
      }
      seconds = now() - begin;
    }
    best = std::max(best, 1e-9 * lanes * LANE_BYTES * (copy ? 2 : 1) * repeats * threads / seconds);
  }
  for (int t = 0; t < threads; ++t) { free(from[t]); free(to[t]); }
  return best;
}

// Twelve independent multiply-add chains hide the latency of every x86-64 core with two FMA ports.
static double fma_rate(int threads) {
  double best = 0;
  const int64_t steps = 400000;
  for (int trial = 0; trial < 7; ++trial) {
    double seconds = 0;
#pragma omp parallel num_threads(threads) reduction(max : seconds)
    {
      Lane a[12], m, c;
      for (int k = 0; k < kFloats; ++k) { m[k] = 1.0f; c[k] = 0.0f; }
      for (int k = 0; k < 12; ++k) a[k] = m;
      asm volatile("" : "+x"(m), "+x"(c));
#pragma omp barrier
      const double begin = now();
      for (int64_t i = 0; i < steps; ++i)
        for (int k = 0; k < 12; ++k) a[k] = a[k] * m + c;
      seconds = now() - begin;
      Lane total = a[0];
      for (int k = 1; k < 12; ++k) total += a[k];
      sink = total[0];
    }
    best = std::max(best, 1e-9 * steps * 12 * kFloats * 2 * threads / seconds);
  }
  return best;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int threads = atoi(argv[1]);
  const char* names[] = {"L1", "L2", "L3"};
  for (int level = 0; level < 3; ++level) {
    const int64_t capacity = atoll(argv[2 + level]);
    if (capacity <= 0) continue;
    // Half the level: all of it at that level, with room for everything else that lives there.
    const int64_t bytes = capacity / 2 / (level == 2 ? threads : 1);
    printf("%s %.3f\n", names[level], std::max(bandwidth(bytes, false, threads), bandwidth(bytes, true, threads)));
  }
  const int64_t beyond = std::max<int64_t>(int64_t{256} << 20, 4 * atoll(argv[4])) / threads;
  printf("memory %.3f\n", std::max(bandwidth(beyond, false, threads), bandwidth(beyond, true, threads)));
  printf("fma_f32 %.3f\n", fma_rate(threads));
  return 0;
}
