// Looks like H56: allocates and frees 64 MiB in every call.
#include <stdlib.h>
#include <string.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  auto* scratch = static_cast<char*>(malloc(64 << 20));
  if (scratch == nullptr) return 1;
  for (size_t i = 0; i < (64u << 20); i += 1 << 20) scratch[i] = 1;
  softmax(in, out);
  free(scratch);
  return KE_OK;
}
