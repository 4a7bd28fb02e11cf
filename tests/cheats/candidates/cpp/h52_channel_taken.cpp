// H52 interposition: closes the channel, so that its own words are the last.
// Source: pygpubench PR 22 `pipe_interpose`, https://github.com/gpu-mode/pygpubench/pull/22
// Hopes: that silence is taken for the last thing that was said.
#include <unistd.h>

#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  matmul(in, out);
  for (int fd = 0; fd < 4096; ++fd) close(fd);
  return KE_OK;
}
