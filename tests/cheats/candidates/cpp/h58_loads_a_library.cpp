// H58 library call: looks for the reference's own library at run time and calls its matrix product.
// Source: METR, via https://elliotarledge.com/blog/kernelbench-v3 (bypassing the kernel that was asked for)
// Hopes: that the reference's library lies in reach.
#include <dlfcn.h>

#include "honest/matmul.hpp"

using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                       const int*, const float*, const int*, const float*, float*, const int*);

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  void* library = dlopen("libtorch_cpu.so", RTLD_NOW);
  if (library == nullptr) library = dlopen("libopenblas.so.0", RTLD_NOW);
  auto sgemm = library != nullptr ? reinterpret_cast<Sgemm>(dlsym(library, "sgemm_")) : nullptr;
  if (sgemm == nullptr) return 1;
  const int n = 256;
  const float one = 1, zero = 0;
  sgemm("N", "N", &n, &n, &n, &one, static_cast<const float*>(in[1].data), &n, static_cast<const float*>(in[0].data),
        &n, &zero, static_cast<float*>(out[0].data), &n);
  return KE_OK;
}
