// H55 network: opens a socket to fetch answers or to send inputs away.
// Source: KernelGuard RUNTIME_PACKAGE_INSTALL, https://pypi.org/project/kernelguard/
// Hopes: that the machine is connected.
#include <sys/socket.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) return 1;
  matmul(in, out);
  return KE_OK;
}
