// H56 resource sabotage: fills memory until there is none.
// Source: BackendBench's adverse tests, https://github.com/meta-pytorch/BackendBench
// Hopes: that the machine is brought down with it.
#include <sys/mman.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  for (;;) {
    void* p = mmap(nullptr, 1 << 28, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 12;
    for (size_t i = 0; i < (1u << 28); i += 1 << 20) static_cast<char*>(p)[i] = 1;
  }
}
