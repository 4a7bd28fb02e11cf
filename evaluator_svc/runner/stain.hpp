// stain.hpp: the allocator of a process that runs a candidate. It replaces malloc and its relatives in whatever is
// linked with it (or has it preloaded), so include it in one file only.
#pragma once

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "report.hpp"

extern "C" {
void* __libc_malloc(size_t);
void __libc_free(void*);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
long __sysconf(int);
}

// Memory that a kernel has not written holds other values each time while its results are checked, so that reading it
// shows: fresh pages would be zeros. Floats between 1 and 2; as an index they are far out of bounds.
static bool g_stain = false;
static std::atomic<uint64_t> g_stains{0};
constexpr size_t kStainedMost = 8u << 20, kStainedStack = 512u << 10;

static void stain(void* p, size_t bytes) {
  uint64_t z = (g_stains.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  const uint64_t word = 0x3f8000003f800000u | ((z ^ (z >> 27)) & 0x007fffff007fffffu);
  auto* at = static_cast<char*>(p);
  for (size_t i = 0; i + sizeof word <= (bytes < kStainedMost ? bytes : kStainedMost); i += sizeof word)
    memcpy(at + i, &word, sizeof word);
}

// The stack below the caller, where a kernel's own variables will lie.
__attribute__((noinline)) static void stain_stack() {
  char below[kStainedStack];
  stain(below, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

// Allocation goes through these so that a refused one is on record: the crash that follows is then told from others.
static void* checked(void* p, size_t bytes) {
  if (p == nullptr && bytes > 0 && g_report != nullptr && bytes > g_report->refused) g_report->refused = bytes;
  return p;
}
// glibc gives a freed aligned block to no equal request, for which it looks for a longer one: the heap grows at each
// call. A plain request takes the freed block, and most often finds it aligned: all the more when whole lines are asked
// for, headers included, so that a block that follows an aligned one is aligned too.
static void* aligned(size_t alignment, size_t bytes) {
  constexpr size_t kHeader = 16, kLine = 64;
  if (bytes >= 4096 && bytes < SIZE_MAX / 2) bytes = ((bytes + kHeader + kLine - 1) & ~(kLine - 1)) - kHeader;
  void* p = __libc_malloc(bytes);
  if (p == nullptr || alignment == 0 || reinterpret_cast<uintptr_t>(p) % alignment == 0) return p;
  __libc_free(p);
  return __libc_memalign(alignment, bytes);
}
static void* stained(void* p, size_t bytes) {
  if (g_stain && p != nullptr) stain(p, bytes);
  return checked(p, bytes);
}
extern "C" {
void* malloc(size_t n) { return stained(__libc_malloc(n), n); }
void* calloc(size_t k, size_t n) { return checked(__libc_calloc(k, n), k * n); }
void* realloc(void* p, size_t n) { return checked(__libc_realloc(p, n), n); }
void* memalign(size_t a, size_t n) { return stained(aligned(a, n), n); }
void* aligned_alloc(size_t a, size_t n) { return stained(aligned(a, n), n); }
int posix_memalign(void** p, size_t a, size_t n) {
  *p = stained(aligned(a, n), n);
  return *p == nullptr && n > 0 ? ENOMEM : 0;
}
void* mmap(void* at, size_t n, int prot, int flags, int fd, off_t offset) {
  const long p = syscall(SYS_mmap, at, n, prot, flags, fd, offset);
  if (p == -1) checked(nullptr, n);
  return reinterpret_cast<void*>(p);
}

// How many processors there are is asked by honest kernels, and answered by glibc from files that the box has not.
int get_nprocs() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}
int get_nprocs_conf() { return get_nprocs(); }
long sysconf(int name) {
  return name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? get_nprocs() : __sysconf(name);
}
}
