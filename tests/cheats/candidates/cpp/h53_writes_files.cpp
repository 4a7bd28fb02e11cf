// H53 file tampering: leaves a file where a later run might import it.
// Source: pygpubench `replace_torch`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that it can write where others read.
#include <fcntl.h>
#include <unistd.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  matmul(in, out);
  const int fd = open("/tmp/torch.py", O_CREAT | O_WRONLY, 0644);
  if (fd >= 0) return write(fd, "raise SystemExit\n", 17) == 17 ? KE_OK : 1;
  return KE_OK;
}
