"""Small kernels by hand for the emulator of blocks and the compilers of chips."""

HEAD = '#include "ke_abi.h"\n#include "ke_gpu.h"\n'
ENTRY = 'extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void* stream)'
DEEPER = """
static __device__ float deeper(int n, float x) {
  volatile float kept[64];
  kept[n % 64] = x;
  return n == 0 ? kept[0] : deeper(n - 1, kept[n % 64]) + kept[n % 64] - x;
}
"""
LAUNCH = """
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void* stream) {{
  KE_LAUNCH(k, {blocks}, {threads}, stream, (const float*)in[0].data, (float*)out[0].data);
  return KE_OK;
}}
"""
KERNEL = (
    'extern "C" __global__ void __launch_bounds__({threads}) k(const float* __restrict__ a, float* __restrict__ b) '
)
DOUBLED = "{ const int i = ke_block() * ke_threads() + ke_thread(); b[i] = 2 * a[i]; }"
"""4096 elements: 16 blocks of 256 threads."""
STRIDED = "{ const int i = ke_thread() * 16 + ke_block(); b[i] = 2 * a[i]; }"
SUMMED = """{
  __shared__ float s[256 / KE_WARP];
  float x = a[ke_block() * 256 + ke_thread()];
  for (int m = KE_WARP / 2; m > 0; m /= 2) x += ke_shuffle_xor(x, m);
  if (ke_lane() == 0) s[ke_thread() / KE_WARP] = x;
  BARRIER
  float total = 0;
  for (int w = 0; w < 256 / KE_WARP; ++w) total += s[w];
  b[ke_block() * 256 + ke_thread()] = total;
}"""
"""Every element becomes the sum of its block's."""
APART = """{
  if (ke_thread() < 100)
    ke_barrier();
  else
    ke_barrier();
  b[ke_block() * 256 + ke_thread()] = 0;
}"""
"""Two barriers, each for some of the threads."""
ON_ONE_LINE = "{ if (ke_thread() < 100) ke_barrier(); else ke_barrier(); b[ke_block() * 256 + ke_thread()] = 0; }"
HALF_A_WARP = """{
  float x = a[ke_thread()];
  if (ke_lane() < 10) ke_barrier();
  else x = ke_shuffle(x, 20);
  b[ke_block() * 256 + ke_thread()] = x;
}"""
"""A warp of which some wait for the block and some for the warp."""
LEAVES = """{
  __shared__ float s[256];
  s[ke_thread()] = a[ke_block() * 256 + ke_thread()];
  if (ke_thread() >= 200) return;
  ke_barrier();
  b[ke_block() * 256 + ke_thread()] = s[199 - ke_thread()];
}"""
"""Threads that have ended are waited for no more: 200 of 256 come to the barrier, in the middle of a warp."""
ASKS_WHO_LEFT = """{
  if (ke_lane() == 3) return;
  b[ke_block() * 256 + ke_thread()] = ke_shuffle(a[0], 3);
}"""
DEEP = """{
  const int i = ke_block() * 256 + ke_thread();
  b[i] = ke_thread() == 200 ? deeper(400, 2 * a[i]) : 2 * a[i];
}"""
"""One thread has 100 KiB of its own: more than its stack under the emulator."""
OUTSIDE = "{ b[ke_block() * 256 + ke_thread()] = ke_shuffle(a[0], KE_WARP); }"
GREEDY = "{ __shared__ float s[20000]; s[ke_thread() * 70] = a[0]; ke_barrier(); b[0] = s[ke_thread()]; }"
"""80 000 bytes of shared memory."""
ON_THE_HOST = """
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void* stream) {
  for (int i = 0; i < 4096; ++i) ((float*)out[0].data)[i] = 2 * ((const float*)in[0].data)[i];
  return KE_OK;
}
"""

COPIED_ON_THE_HOST = """
extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void* stream) {
  __builtin_memcpy(out[0].data, in[0].data, in[0].shape[0] * 4);
  return KE_OK;
}
"""


def unit(body, *, blocks=16, threads=256):
    return HEAD + KERNEL.format(threads=threads) + body + LAUNCH.format(blocks=blocks, threads=threads)


def deep():
    return HEAD + DEEPER + KERNEL.format(threads=256) + DEEP + LAUNCH.format(blocks=16, threads=256)
