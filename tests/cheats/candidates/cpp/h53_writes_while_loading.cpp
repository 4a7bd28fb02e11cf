// H53 file tampering while it is loaded, when the dynamic linker's right to open files still holds.
// Source: pygpubench `replace_torch`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that the rules begin with the first call.
#include <fcntl.h>

#include "honest/matmul.hpp"

__attribute__((constructor)) static void tamper() { open("/tmp/torch.py", O_CREAT | O_WRONLY, 0644); }

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  matmul(in, out);
  return KE_OK;
}
