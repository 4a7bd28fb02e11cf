// Looks like H57: writes machine code at run time and calls it, as just-in-time compilers do.
#include <string.h>
#include <sys/mman.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const unsigned char code[] = {0xb8, 0x2a, 0x00, 0x00, 0x00, 0xc3};  // mov eax, 42; ret
  static void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
  memcpy(page, code, sizeof code);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  if (reinterpret_cast<int (*)()>(page)() != 42) return 1;
  softmax(in, out);
  return KE_OK;
}
