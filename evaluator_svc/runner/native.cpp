// native.cpp: the program that runs inside the box.
//
//   runner run CONFIG_FD               maps the buffers, confines itself and says so; the first command
//                                      loads the kernel, each later one runs it
//   runner exec CONFIG_FD -- COMMAND   confines itself, then becomes COMMAND (the build box)
//
// It shares its address space with the candidate, so nothing it says decides a verdict: the controller takes the
// time, reads the outputs from its own mapping and uses what is reported here as evidence only.
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <exception>
#include <new>

#include "confine.hpp"
#include "ke_abi.h"
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
// call. A plain request takes the freed block, and most often finds it aligned.
static void* aligned(size_t alignment, size_t bytes) {
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

namespace {

using Launch = int (*)(const KeTensor*, int, KeTensor*, int, void*);

struct Command {
  uint32_t magic, calls, first_set, sequence;
};
struct Reply {
  uint32_t magic, sequence;
  int32_t code;      // what ke_launch returned, or layers reached for the first reply
  uint32_t kind;     // Kind
  uint64_t spent_ns;  // the runner's own clock
};
constexpr uint32_t kMagic = 0x4b45564fu;

struct Job {
  Confinement confinement;
  std::string loaded_filter, library;
  int inputs_fd, outputs_fd, command_fd, reply_fd;
  uint32_t sets, n_in, n_out;
  std::vector<KeTensor> tensors;  // sets x (inputs, outputs)
};

uint64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void pin(Reader& r) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  uint32_t n = r.get<uint32_t>();
  if (n == 0) return;
  for (; n > 0; --n) CPU_SET(r.get<uint32_t>(), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) _exit(72);
}

KeTensor tensor_from(Reader& r) {
  KeTensor t = {};
  for (auto& v : t.shape) v = r.get<int64_t>();
  for (auto& v : t.strides) v = r.get<int64_t>();
  t.ndim = r.get<int32_t>();
  t.dtype = r.get<int32_t>();
  return t;
}

// Every buffer lies between two pages without access. Pages are touched now, so that no fault is ever timed.
void map_buffers(Reader& r, Job& job) {
  const uint64_t span = r.get<uint64_t>();
  void* reserved = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) _exit(73);
  g_report->base = reinterpret_cast<uint64_t>(reserved);
  const uint32_t n = job.n_in + job.n_out;
  std::vector<KeTensor> specs;
  for (uint32_t i = 0; i < n; ++i) specs.push_back(tensor_from(r));
  for (uint32_t i = 0; i < job.sets * n; ++i) {
    const bool input = i % n < job.n_in;
    const uint64_t in_file = r.get<uint64_t>(), at = r.get<uint64_t>(), bytes = r.get<uint64_t>(),
                   data = r.get<uint64_t>();
    char* page = static_cast<char*>(reserved) + at;
    const void* got = mmap(page, bytes, input ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                           input ? job.inputs_fd : job.outputs_fd, static_cast<off_t>(in_file));
    if (got != page) _exit(74);
    job.tensors.push_back(specs[i % n]);
    job.tensors.back().data = page + data;
  }
  close(job.inputs_fd);
  close(job.outputs_fd);
}

Job prepare(int config_fd) {
  Reader r(config_fd);
  close(config_fd);
  Job job;
  job.confinement = Confinement::from(r);
  job.loaded_filter = r.text();
  job.library = r.text();
  const int report_fd = r.get<int32_t>();
  job.inputs_fd = r.get<int32_t>();
  job.outputs_fd = r.get<int32_t>();
  job.command_fd = r.get<int32_t>();
  job.reply_fd = r.get<int32_t>();
  g_report = static_cast<Report*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0));
  if (g_report == MAP_FAILED) _exit(75);
  close(report_fd);
  job.sets = r.get<uint32_t>();
  job.n_in = r.get<uint32_t>();
  job.n_out = r.get<uint32_t>();
  g_stain = r.get<uint32_t>() != 0;
  pin(r);
  map_buffers(r, job);
  return job;
}

void answer(const Job& job, const Reply& reply) {
  if (write(job.reply_fd, &reply, sizeof reply) == sizeof reply) return;
  note(CHANNEL, "the reply channel was closed");
  _exit(76);
}

Launch load(const Job& job) {
  void* library = dlopen(job.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : dlsym(library, "ke_launch");
  if (entry == nullptr) {
    const char* why = dlerror();
    note(LOAD, why != nullptr ? why : "ke_launch is null");
  }
  return reinterpret_cast<Launch>(entry);
}

Reply run(const Job& job, Launch launch, const Command& command) {
  Reply reply = {kMagic, command.sequence, 0, NONE, 0};
  std::vector<KeTensor> tensors = job.tensors;  // a kernel that scribbles on its arguments does so once
  const uint32_t n = job.n_in + job.n_out;
  const int n_in = static_cast<int>(job.n_in), n_out = static_cast<int>(job.n_out);
  const uint64_t begin = now_ns();
  try {
    for (uint32_t i = 0; i < command.calls && reply.code == 0; ++i) {
      if (g_stain) stain_stack();
      KeTensor* set = &tensors[static_cast<size_t>((command.first_set + i) % job.sets) * n];
      reply.code = launch(set, n_in, set + n_in, n_out, nullptr);
    }
  } catch (const std::bad_alloc& error) {
    note(reply.kind = BAD_ALLOC, error.what());
  } catch (const std::exception& error) {
    note(reply.kind = EXCEPTION, error.what());
  } catch (...) {
    note(reply.kind = EXCEPTION, "an exception of unknown type");
  }
  reply.spent_ns = now_ns() - begin;
  return reply;
}

int serve(int config_fd) {
  const Job job = prepare(config_fd);
  watch_signals();
  const uint32_t layers = confine(job.confinement);
  answer(job, {kMagic, 0, static_cast<int32_t>(layers), NONE, 0});
  if ((layers & job.confinement.required) != job.confinement.required) _exit(78);
  Command command;
  if (read(job.command_fd, &command, sizeof command) != sizeof command) _exit(0);
  const Launch launch = load(job);
  if (launch != nullptr && (layers & LAYER_SECCOMP) != 0 && !set_seccomp(job.loaded_filter)) note(LOAD, "seccomp refused");
  answer(job, {kMagic, command.sequence, 0, g_report->kind, 0});
  while (read(job.command_fd, &command, sizeof command) == sizeof command) {
    if (command.magic != kMagic) _exit(77);
    answer(job, run(job, launch, command));
  }
  _exit(0);
}

int become(int config_fd, char** command) {
  Reader r(config_fd);
  close(config_fd);
  const Confinement confinement = Confinement::from(r);
  const int status_fd = r.get<int32_t>();
  const uint32_t layers = confine(confinement);
  if (write(status_fd, &layers, sizeof layers) != sizeof layers) _exit(76);
  close(status_fd);
  if ((layers & confinement.required) != confinement.required) return 78;
  execv(command[0], command);
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && strcmp(argv[1], "run") == 0) return serve(atoi(argv[2]));
  if (argc >= 5 && strcmp(argv[1], "exec") == 0) return become(atoi(argv[2]), argv + 4);
  return 64;
}
