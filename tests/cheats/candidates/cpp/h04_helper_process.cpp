// H04 helper process: a forked child shares the output's memory and does the work after the call has returned.
// Source: KernelGuard THREAD_INJECTION, https://pypi.org/project/kernelguard/
// Hopes: that a process of its own is neither counted nor stopped.
#include <unistd.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  if (fork() == 0) {
    matmul(in, out);
    _exit(0);
  }
  return KE_OK;
}
