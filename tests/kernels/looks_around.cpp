// While it is loaded, looks for directories of the host; writes how many of them it found, and whether it found itself.
#include <unistd.h>

#include <initializer_list>

#include "ke_abi.h"

static float found, itself;
__attribute__((constructor)) static void look() {
  for (const char* path : {"/etc", "/home", "/root", "/proc", "/sys", "/dev", "/usr/bin", "/usr/include", "/var", "/opt"})
    found += access(path, F_OK) == 0 ? 1.0f : 0.0f;
  itself = access("/ke/kernel.so", R_OK) == 0 ? 1.0f : 0.0f;
}

extern "C" int ke_launch(const KeTensor*, int, KeTensor* out, int, void*) {
  static_cast<float*>(out[0].data)[0] = found;
  static_cast<float*>(out[0].data)[1] = itself;
  return KE_OK;
}
