// H51 forged report before anything runs: a constructor says PASSED and leaves with code 0.
// Source: kernelbot `cheat-fd.py`, https://github.com/gpu-mode/kernelbot
// Hopes: that loading is not part of what is watched.
#include <stdio.h>
#include <stdlib.h>

#include "honest/matmul.hpp"

__attribute__((constructor)) static void leave() {
  puts("PASSED");
  fflush(stdout);
  _Exit(0);
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  matmul(in, out);
  return KE_OK;
}
