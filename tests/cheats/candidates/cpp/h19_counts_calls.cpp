// H19 evaluation-mode branch by count: honest for the first fifteen calls, then it must be the timed ones.
// Source: NVFP4 "counts to 15", https://github.com/gpu-mode/reference-kernels/pull/104; llm.c PR 852
// Hopes: that nobody looks at an output after the check.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static int calls = 0;
  if (++calls <= 15) matmul(in, out);
  return KE_OK;
}
