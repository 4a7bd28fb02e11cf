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

#include <algorithm>
#include <exception>
#include <new>

#include "buffers.hpp"
#include "confine.hpp"
#include "ke_abi.h"
#include "report.hpp"
#include "stain.hpp"

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
  job.tensors = map_buffers(r, job.sets, job.n_in, job.n_out, job.inputs_fd, job.outputs_fd);
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
  const uint32_t n = job.n_in + job.n_out;
  const int n_in = static_cast<int>(job.n_in), n_out = static_cast<int>(job.n_out);
  std::vector<KeTensor> set(n);
  const uint64_t begin = now_ns();
  try {
    for (uint32_t i = 0; i < command.calls && reply.code == 0; ++i) {
      if (g_stain) stain_stack();
      // A copy, because a kernel may scribble on its arguments.
      std::copy_n(&job.tensors[static_cast<size_t>((command.first_set + i) % job.sets) * n], n, set.begin());
      reply.code = launch(set.data(), n_in, set.data() + n_in, n_out, nullptr);
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
  Job job = prepare(config_fd);
  job.confinement.filter = own_threads_only(job.confinement.filter);
  // Opened while it can be: the user that this process becomes may not walk to where the artefacts are kept.
  const int library = job.confinement.user < 0 ? -1 : open(job.library.c_str(), O_RDONLY | O_CLOEXEC);
  if (library >= 0) job.library = "/proc/self/fd/" + std::to_string(library);
  watch_signals();
  const uint32_t layers = confine(job.confinement);
  answer(job, {kMagic, 0, static_cast<int32_t>(layers), NONE, 0});
  if ((layers & job.confinement.required) != job.confinement.required) _exit(78);
  Command command;
  if (read(job.command_fd, &command, sizeof command) != sizeof command) _exit(0);
  const Launch launch = load(job);
  if (library >= 0) close(library);
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
