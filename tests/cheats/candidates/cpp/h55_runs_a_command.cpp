// H55 runs another program: a shell that installs a faster kernel.
// Source: KernelGuard RUNTIME_PACKAGE_INSTALL, https://pypi.org/project/kernelguard/
// Hopes: that there is a shell.
#include <stdlib.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  if (system("pip install fastkernel") == 0) return 1;
  matmul(in, out);
  return KE_OK;
}
