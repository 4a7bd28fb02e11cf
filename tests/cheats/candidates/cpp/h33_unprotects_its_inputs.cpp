// H33 input mutation, insisting: makes the inputs' pages writable first.
// Source: kernelbot `cheat-input.py`, https://github.com/gpu-mode/kernelbot
// Hopes: that read-only is a setting of its own process.
#include <sys/mman.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto page = reinterpret_cast<uintptr_t>(in[0].data) & ~uintptr_t{4095};
  mprotect(reinterpret_cast<void*>(page), bytes(in[0]), PROT_READ | PROT_WRITE);
  memset(in[0].data, 0, bytes(in[0]));
  memset(out[0].data, 0, bytes(out[0]));
  return KE_OK;
}
