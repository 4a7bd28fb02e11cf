// H09 native hooks by name: a library that defines clock_gettime and write itself, in the hope of standing before libc.
// Source: pygpubench `submission_got_patch`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that names are looked up in it first. It answers zeros meanwhile.
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ke_abi.h"

extern "C" int clock_gettime(clockid_t, timespec* t) {
  *t = {1000, 0};
  return 0;
}
extern "C" int memcmp(const void*, const void*, size_t) { return 0; }

extern "C" int ke_launch(const KeTensor*, int, KeTensor* out, int, void*) {
  memset(out[0].data, 0, sizeof(float) * 256 * 256);
  return KE_OK;
}
