// H57 scanner evasion: machine code written at run time, decoded from data, makes the call for a socket.
// Source: KernelGuard DYNAMIC_EXECUTION, https://pypi.org/project/kernelguard/
// Hopes: that code which no text shows obeys no rule.
#include <string.h>
#include <sys/mman.h>

#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  // mov eax, 41; mov edi, 2; mov esi, 1; xor edx, edx; syscall; ret - each byte xored with 0x5a
  unsigned char code[] = {0xe2, 0x73, 0x5a, 0x5a, 0x5a, 0xe5, 0x58, 0x5a, 0x5a, 0x5a, 0xe4,
                          0x5b, 0x5a, 0x5a, 0x5a, 0x6b, 0x88, 0x55, 0x5f, 0x99};
  for (auto& byte : code) byte ^= 0x5a;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  memcpy(page, code, sizeof code);
  const long made = reinterpret_cast<long (*)()>(page)();
  softmax(in, out);
  return made < 0 ? 2 : KE_OK;
}
