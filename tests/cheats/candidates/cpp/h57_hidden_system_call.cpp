// H57 scanner evasion: no name of a system call in the text, a number put together at run time, and the old 32-bit
// entrance, which a filter for 64-bit calls might not watch. It forks.
// Source: KernelGuard OBFUSCATED_EXEC, TOKEN_PASTE_CUDA_API, https://pypi.org/project/kernelguard/
// Hopes: that what no scanner sees is not refused.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  volatile int one = 1;
  long number = one + one, result;
  asm volatile("int $0x80" : "=a"(result) : "a"(number) : "memory", "r8", "r9", "r10", "r11");
  softmax(in, out);
  return result < 0 ? 1 : KE_OK;
}
