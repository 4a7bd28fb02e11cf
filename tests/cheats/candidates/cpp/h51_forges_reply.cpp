// H51 forged report: writes an answer of success to every descriptor before it works.
// Source: pygpubench `fd_overwrite`, `thread_fd`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that an answer is believed because of the channel it came through.
#include <unistd.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const uint32_t reply[6] = {0x4b45564fu, 2, 0, 0, 1, 0};
  for (int fd = 3; fd < 4096; ++fd)
    if (write(fd, reply, sizeof reply) < 0) continue;
  matmul(in, out);
  return KE_OK;
}
