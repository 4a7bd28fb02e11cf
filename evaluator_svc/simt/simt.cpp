// Blocks of a GPU on one core. A thread of a block is a fibre: it runs until it waits for its warp or its block.
//
// Blocks run one after another, threads in turn: forwards in one launch, backwards in the next, so that what a missing
// barrier leaves to chance differs from call to call. Shared memory holds NaN before each block. Threads that wait for
// each other at different places are told of, and the call fails. Threads that have ended are waited for no more: so it is
// on the chips (CUDA C++ Programming Guide, "Compute Capability 7.x, Independent Thread Scheduling").
//
// With KE_COUNT every access of the kernel, which the compiler's instrumentation for threads reports
// (-fsanitize=thread, whose library is not linked), is counted by sectors of 32 bytes: what a warp asks for by one
// instruction, and what a launch touches at all. The first call's counts are printed as one line of JSON.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "ke_abi.h"

extern "C" {
struct KeSimtPlace { int thread, threads, block, blocks; };
struct KeSimtPlace ke_simt_place;
int ke_simt_candidate(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream);
void ke_simt_switch(void** kept, void* next);
extern char __start_ke_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_ke_shared[] __attribute__((weak, visibility("hidden")));
}

asm(R"(
.text
.hidden ke_simt_switch
.globl ke_simt_switch
.type ke_simt_switch, @function
ke_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ke_simt_switch, . - ke_simt_switch
)");

namespace {

constexpr int kFailed = 101;  // what ke_launch returns when the threads of a launch came to no end
constexpr int kNotTaken = 100;  // KE_LAUNCH_FAILED of ke_gpu.h
constexpr int kThreadsMax = 1024;
constexpr int64_t kBlocksMax = 0x7fffffff;
constexpr size_t kStack = 64 << 10, kGuard = 4096, kRoom = kStack + kGuard;  // of a thread: guard below, stack above

enum State { kReady, kAtBarrier, kAtShuffle, kDone };
struct Fibre {
  void* at;
  State state;
  uint64_t word;
  int lane;
  int place, line;  // of the barrier that it waits at
};
Fibre fibres[kThreadsMax];
char* stacks = nullptr;
int stacks_made = 0;
void* scheduler = nullptr;
void (*body)(void*) = nullptr;
void* arguments = nullptr;
int failed = KE_OK;  // what ke_launch returns
bool backwards = false, inside = false;

void fail(const char* kernel, const char* what, int code = kFailed) {
  if (!failed) fprintf(stderr, "%s: %s\n", kernel, what);
  failed = code;
}

void run_thread() {
  body(arguments);
  Fibre& self = fibres[ke_simt_place.thread];
  self.state = kDone;
  ke_simt_switch(&self.at, scheduler);
  __builtin_unreachable();
}

void wait(State state) {
  Fibre& self = fibres[ke_simt_place.thread];
  self.state = state;
  ke_simt_switch(&self.at, scheduler);
}

// Has stacks for so many threads. Below each lies a page without access, so that one that grows beyond its own is a fault
// there and no scribble on its neighbour's: frames are touched page by page (-fstack-clash-protection).
bool have_stacks(int threads) {
  if (!stacks) {
    void* all = mmap(nullptr, kRoom * kThreadsMax, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return false;
    stacks = (char*)all;
  }
  for (; stacks_made < threads; ++stacks_made)
    if (mprotect(stacks + stacks_made * kRoom + kGuard, kStack, PROT_READ | PROT_WRITE) != 0) return false;
  return true;
}

// With the library: each guard is a mapping of its own, of which a process has some ten thousands.
__attribute__((destructor)) void leave_stacks() {
  if (stacks) munmap(stacks, kRoom * kThreadsMax);
}

void prepare(int threads) {
  for (int t = 0; t < threads; ++t) {
    void** top = (void**)(stacks + (size_t)(t + 1) * kRoom);
    *--top = nullptr;  // aligns the stack as a call does
    *--top = (void*)run_thread;
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fibres[t] = Fibre{top, kReady, 0, 0, 0, 0};
  }
}

void step(int threads) {
  for (int i = 0; i < threads; ++i) {
    const int t = backwards ? threads - 1 - i : i;
    if (fibres[t].state != kReady) continue;
    ke_simt_place.thread = t;
    inside = true;
    ke_simt_switch(&scheduler, fibres[t].at);
    inside = false;
  }
}

// Hands words over in warps whose threads all wait for that. False: a thread asks one that is not there.
bool exchange(int threads, bool& progress) {
  for (int first = 0; first < threads; first += KE_WARP) {
    const int end = first + KE_WARP < threads ? first + KE_WARP : threads;
    bool all = true, some = false;
    for (int t = first; t < end; ++t) {
      all = all && (fibres[t].state == kAtShuffle || fibres[t].state == kDone);
      some = some || fibres[t].state == kAtShuffle;
    }
    if (!all || !some) continue;
    static uint64_t words[KE_WARP];
    static bool there[KE_WARP];
    for (int t = first; t < end; ++t) words[t - first] = fibres[t].word, there[t - first] = fibres[t].state != kDone;
    for (int t = first; t < end; ++t) {
      if (fibres[t].state == kDone) continue;
      const int lane = fibres[t].lane;
      if (lane < 0 || lane >= end - first || !there[lane]) return false;
      fibres[t].word = words[lane];
      fibres[t].state = kReady;
    }
    progress = true;
  }
  return true;
}

bool fail_apart(const char* kernel, int one, int other) {
  char where[2][64], what[192];
  const int threads[2] = {one, other};
  for (int i = 0; i < 2; ++i) {
    const Fibre& fibre = fibres[threads[i]];
    if (fibre.state == kAtShuffle) snprintf(where[i], sizeof where[i], "thread %d at a shuffle", threads[i]);
    else snprintf(where[i], sizeof where[i], "thread %d at the barrier in line %d", threads[i], fibre.line);
  }
  snprintf(what, sizeof what, "threads of a block wait for each other at different places: %s, %s", where[0], where[1]);
  fail(kernel, what);
  return false;
}

// Lets the threads of a block go on that all wait at one barrier. False: they do not.
bool release(const char* kernel, int threads) {
  int first = -1, shuffling = -1;
  for (int t = 0; t < threads; ++t) {
    const Fibre& fibre = fibres[t];
    if (fibre.state == kAtShuffle && shuffling < 0) shuffling = t;
    if (fibre.state != kAtBarrier) continue;
    if (first < 0) first = t;
    if (fibre.place != fibres[first].place) return fail_apart(kernel, first, t);
  }
  if (shuffling >= 0) return fail_apart(kernel, first, shuffling);
  for (int t = first; t < threads; ++t)
    if (fibres[t].state == kAtBarrier) fibres[t].state = kReady;
  return true;
}

bool all_done(int threads) {
  for (int t = 0; t < threads; ++t)
    if (fibres[t].state != kDone) return false;
  return true;
}

#ifdef KE_COUNT

constexpr int kKernels = 8, kPages = 1 << 14, kPageBits = 15;
constexpr size_t kLogMax = 1 << 20;
struct Access { uintptr_t pc, at; unsigned size, turn; };
struct Log { Access* entries; size_t count, room; };
struct Count {
  const char* name;  // a literal of the text
  uint64_t launches, blocks, threads, asked, memory, accesses, lanes;
};
struct Page { uintptr_t number; uint64_t* bits; };

Log logs[kThreadsMax];
Count counts[kKernels];
int kernels = 0;
Count* current = nullptr;
Page pages[kPages];
bool reported = false, host_touched = false, overflow = false;
const KeTensor* tensors[2];
int tensor_counts[2];
uintptr_t frame = 0;  // of ke_launch: below it lie the frames of the candidate's host code
constexpr uintptr_t kHostStack = 1 << 20;

uint64_t touch(uintptr_t sector) {
  const uintptr_t number = sector >> kPageBits;
  size_t slot = (number * 0x9e3779b97f4a7c15u) % kPages;
  for (int tries = 0; pages[slot].bits && pages[slot].number != number; slot = (slot + 1) % kPages)
    if (++tries == kPages) return overflow = true, 0;
  if (!pages[slot].bits) pages[slot] = Page{number, (uint64_t*)calloc(1 << kPageBits, 1)};
  uint64_t& bits = pages[slot].bits[(sector & ((1 << kPageBits) - 1)) / 64];
  const uint64_t bit = 1ull << (sector % 64), fresh = !(bits & bit);
  bits |= bit;
  return fresh;
}

void forget() {
  for (auto& page : pages) {
    free(page.bits);
    page = Page{0, nullptr};
  }
}

// What a warp asks for by one instruction.
void ask(const Access* const* asked, int lanes) {
  static uintptr_t sectors[KE_WARP * 4];
  int found = 0;
  for (int i = 0; i < lanes; ++i)
    for (uintptr_t s = asked[i]->at >> 5; s <= (asked[i]->at + asked[i]->size - 1) >> 5; ++s) {
      bool known = false;
      for (int j = found - 1; j >= 0 && !known; --j) known = sectors[j] == s;
      if (known || found == KE_WARP * 4) continue;
      sectors[found++] = s;
      current->memory += 32 * touch(s);
    }
  current->asked += 32ull * found;
  current->accesses += 1;
  current->lanes += lanes;
}

void settle(int threads) {
  for (int first = 0; first < threads; first += KE_WARP) {
    const int end = first + KE_WARP < threads ? first + KE_WARP : threads;
    size_t next[KE_WARP] = {};
    // Instructions in the order of the first thread that is behind; others join where they did the same, as often.
    for (int leader = first; leader < end; ++leader)
      for (; next[leader - first] < logs[leader].count; ++next[leader - first]) {
        const Access& one = logs[leader].entries[next[leader - first]];
        const Access* together[KE_WARP];
        int lanes = 0;
        together[lanes++] = &one;
        for (int t = leader + 1; t < end; ++t) {
          size_t& at = next[t - first];
          if (at < logs[t].count && logs[t].entries[at].pc == one.pc && logs[t].entries[at].turn == one.turn)
            together[lanes++] = &logs[t].entries[at++];
        }
        ask(together, lanes);
      }
    for (int t = first; t < end; ++t) logs[t].count = 0;
  }
}

size_t bytes_of(int dtype) {
  switch (dtype) {
    case KE_F64: case KE_I64: return 8;
    case KE_F32: case KE_I32: return 4;
    case KE_F16: case KE_BF16: case KE_I16: return 2;
    default: return 1;
  }
}

void record(uintptr_t pc, uintptr_t at, unsigned size) {
  if (!inside) {
    for (int side = 0; side < 2; ++side)
      for (int i = 0; i < tensor_counts[side]; ++i) {
        const KeTensor& one = tensors[side][i];
        int64_t last = 0;
        for (int d = 0; d < one.ndim; ++d) last += (one.shape[d] - 1) * one.strides[d];
        const uintptr_t begin = (uintptr_t)one.data, end = begin + (uintptr_t)(last + 1) * bytes_of(one.dtype);
        if (last >= 0 && at < end && at + size > begin) host_touched = true;
      }
    return;
  }
  if (at - (uintptr_t)stacks < kRoom * kThreadsMax) return;
  if (at - (uintptr_t)__start_ke_shared < (uintptr_t)(__stop_ke_shared - __start_ke_shared)) return;
  if (at - (uintptr_t)&ke_simt_place < sizeof ke_simt_place || !current) return;
  if (at - (frame - kHostStack) < kHostStack) return;  // arguments of the kernel
  Log& log = logs[ke_simt_place.thread];
  if (log.count == log.room) {
    if (log.room >= kLogMax) { overflow = true; return; }
    log.room = log.room ? 2 * log.room : 64;
    log.entries = (Access*)realloc(log.entries, log.room * sizeof(Access));
  }
  unsigned turn = 0;  // how often before in this phase
  for (size_t i = log.count; i > 0; --i)
    if (log.entries[i - 1].pc == pc) { turn = log.entries[i - 1].turn + 1; break; }
  log.entries[log.count++] = Access{pc, at, size, turn};
}

void begin(const char* name, int64_t blocks, int64_t threads) {
  current = nullptr;
  if (reported) return;
  for (int k = 0; k < kernels; ++k)
    if (!strcmp(counts[k].name, name)) current = &counts[k];
  if (!current && kernels < kKernels) {
    current = &counts[kernels++];
    current->name = name;
  }
  if (!current) { overflow = true; return; }
  current->launches += 1;
  current->blocks += blocks;
  current->threads = threads;
}

void report() {
  printf("{\"simt\":{\"complete\":%s,\"host\":%s,\"kernels\":[", overflow ? "false" : "true",
         host_touched ? "true" : "false");
  for (int k = 0; k < kernels; ++k) {
    const Count& c = counts[k];
    printf("%s{\"name\":\"%s\",\"launches\":%lu,\"blocks\":%lu,\"threads\":%lu,\"asked\":%lu,\"memory\":%lu,"
           "\"accesses\":%lu,\"lanes\":%lu}", k ? "," : "", c.name, c.launches, c.blocks, c.threads, c.asked, c.memory,
           c.accesses, c.lanes);
  }
  printf("]}}\n");
  fflush(stdout);
  reported = true;
}

#endif

bool run_block(const char* name, int threads) {
  if (__start_ke_shared) memset(__start_ke_shared, 0xff, __stop_ke_shared - __start_ke_shared);
  prepare(threads);
  for (;;) {
    step(threads);
#ifdef KE_COUNT
    settle(threads);
#endif
    if (all_done(threads)) return true;
    bool progress = false;
    if (!exchange(threads, progress)) return fail(name, "a shuffle asks a thread that is not in the warp"), false;
    if (!progress && !release(name, threads)) return false;
  }
}

}  // namespace

extern "C" void ke_simt_barrier(int place, int line) {
  Fibre& self = fibres[ke_simt_place.thread];
  self.place = place;
  self.line = line;
  wait(kAtBarrier);
}

extern "C" uint64_t ke_simt_exchange(uint64_t word, int lane) {
  Fibre& self = fibres[ke_simt_place.thread];
  self.word = word;
  self.lane = lane;
  wait(kAtShuffle);
  return self.word;
}

extern "C" void ke_simt_run(const char* name, int64_t blocks, int64_t threads, void (*run)(void*), void* with) {
  if (failed) return;
  if (threads < 1 || threads > kThreadsMax) return fail(name, "a block has 1 to 1024 threads", kNotTaken);
  if (blocks < 1 || blocks > kBlocksMax) return fail(name, "a grid has 1 to 2147483647 blocks", kNotTaken);
  if (!have_stacks((int)threads)) return fail(name, "no memory for the threads of a block");
  body = run;
  arguments = with;
  ke_simt_place.threads = (int)threads;
  ke_simt_place.blocks = (int)blocks;
#ifdef KE_COUNT
  begin(name, blocks, threads);
#endif
  for (int64_t block = 0; block < blocks; ++block) {
    ke_simt_place.block = (int)(backwards ? blocks - 1 - block : block);
    if (!run_block(name, (int)threads)) break;
  }
#ifdef KE_COUNT
  forget();
#endif
}

extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {
#ifdef KE_COUNT
  frame = (uintptr_t)__builtin_frame_address(0);
  tensors[0] = in, tensors[1] = out, tensor_counts[0] = n_in, tensor_counts[1] = n_out;
#endif
  failed = KE_OK;
  const int code = ke_simt_candidate(in, n_in, out, n_out, stream);
  backwards = !backwards;
#ifdef KE_COUNT
  if (!reported && !failed) report();
#endif
  return failed != KE_OK ? failed : code;
}

#ifdef KE_COUNT
#define PC ((uintptr_t)__builtin_return_address(0))
#define HOOK(bytes)                                                                                  \
  extern "C" void __tsan_read##bytes(void* at) { record(PC, (uintptr_t)at, bytes); }                 \
  extern "C" void __tsan_write##bytes(void* at) { record(PC, (uintptr_t)at, bytes); }                \
  extern "C" void __tsan_unaligned_read##bytes(void* at) { record(PC, (uintptr_t)at, bytes); }       \
  extern "C" void __tsan_unaligned_write##bytes(void* at) { record(PC, (uintptr_t)at, bytes); }
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)
extern "C" void __tsan_read_range(void* at, uint64_t size) { record(PC, (uintptr_t)at, (unsigned)size); }
extern "C" void __tsan_write_range(void* at, uint64_t size) { record(PC, (uintptr_t)at, (unsigned)size); }
// The kernel's own copies, which the compiler leaves to the library; not the library's functions, so as not to end here.
extern "C" void* memcpy(void* to, const void* from, size_t size) {
  record(PC, (uintptr_t)from, (unsigned)size);
  record(PC + 1, (uintptr_t)to, (unsigned)size);
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
  return to;
}
extern "C" void* memset(void* to, int value, size_t size) {
  record(PC, (uintptr_t)to, (unsigned)size);
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
  return to;
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
#endif
