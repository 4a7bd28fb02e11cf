// H47 find expected tensors: reads the map of its own memory to look for answers among it.
// Source: pygpubench issue 23, https://github.com/gpu-mode/pygpubench/issues/23
// Hopes: that expected answers live in the process that runs it.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const size_t n = sizeof(float) * 256 * 256;
  char map[4096] = {};
  const int fd = open("/proc/self/maps", O_RDONLY);
  if (fd >= 0 && read(fd, map, sizeof map - 1) > 0 && strstr(map, "expected") != nullptr) return 1;
  memcpy(out[0].data, in[0].data, n);  // what follows would search; the question alone is refused
  return KE_OK;
}
