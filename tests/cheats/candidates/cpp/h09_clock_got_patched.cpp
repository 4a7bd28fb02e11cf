// H09 native hooks: the slot through which the program that loaded it calls clock_gettime now leads to a clock that
// stands still.
// Source: pygpubench `submission_got_patch`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that the time which counts is taken in its own address space.
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "honest/matmul.hpp"

static int standing(clockid_t, timespec* t) {
  *t = {1000, 0};
  return 0;
}

static int patch(dl_phdr_info* module, size_t, void*) {
  const ElfW(Dyn)* d = nullptr;
  for (int i = 0; i < module->dlpi_phnum; ++i)
    if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
      d = reinterpret_cast<const ElfW(Dyn)*>(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* tables[2] = {};
  size_t sizes[2] = {};
  for (; d != nullptr && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_JMPREL) tables[0] = reinterpret_cast<const ElfW(Rela)*>(d->d_un.d_ptr);
    if (d->d_tag == DT_PLTRELSZ) sizes[0] = d->d_un.d_val;
    if (d->d_tag == DT_RELA) tables[1] = reinterpret_cast<const ElfW(Rela)*>(d->d_un.d_ptr);
    if (d->d_tag == DT_RELASZ) sizes[1] = d->d_un.d_val;
  }
  for (int t = 0; t < 2 && symbols != nullptr && names != nullptr; ++t)
    for (size_t i = 0; tables[t] != nullptr && i < sizes[t] / sizeof(ElfW(Rela)); ++i) {
      if (strcmp(names + symbols[ELF64_R_SYM(tables[t][i].r_info)].st_name, "clock_gettime") != 0) continue;
      auto* slot = reinterpret_cast<void**>(module->dlpi_addr + tables[t][i].r_offset);
      const auto page = reinterpret_cast<uintptr_t>(slot) & ~uintptr_t{4095};
      if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) == 0)
        *slot = reinterpret_cast<void*>(standing);
    }
  return 0;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const int patched = dl_iterate_phdr(patch, nullptr);
  (void)patched;
  matmul(in, out);
  return KE_OK;
}
