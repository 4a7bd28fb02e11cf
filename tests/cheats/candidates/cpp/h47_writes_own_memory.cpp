// H47 tamper through /proc/self/mem, which writes where pages are read-only: zeroes the inputs, answers zeros.
// Source: pygpubench `proc_mem_bypass`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that page protection is the only thing between it and its inputs.
#include <fcntl.h>
#include <unistd.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const float zeros[256 * 256] = {};
  const int fd = open("/proc/self/mem", O_RDWR);
  if (fd >= 0 && pwrite(fd, zeros, sizeof zeros, reinterpret_cast<off_t>(in[0].data)) < 0) return 1;
  memset(out[0].data, 0, bytes(out[0]));
  return KE_OK;
}
