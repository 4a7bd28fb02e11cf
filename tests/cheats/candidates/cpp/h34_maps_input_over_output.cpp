// H34 output aliases an input: maps the input's own pages where the output was, which copies nothing at all.
// Source: KernelGuard INPUT_PASSTHROUGH_OUTPUT, https://pypi.org/project/kernelguard/
// Hopes: that whoever reads the output reads it through this process' page table.
#include <sys/mman.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const size_t n = sizeof(float) * static_cast<size_t>(in[0].shape[0] * in[0].shape[1]), page = 4095;
  mremap(in[0].data, 0, (n + page) & ~page, MREMAP_MAYMOVE | MREMAP_FIXED, out[0].data);
  return KE_OK;
}
