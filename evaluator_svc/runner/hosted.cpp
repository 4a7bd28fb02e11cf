// hosted.cpp: what the process of a Python-hosted candidate does below Python. A library, preloaded into the fork
// server so that its allocator is everybody's; the functions are called in the order in which they stand here, all but
// the last few before any line of the candidate's runs.
//
// It shares its address space with the candidate, so nothing it says decides a verdict.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "buffers.hpp"
#include "confine.hpp"
#include "report.hpp"
#include "stain.hpp"

namespace {

Confinement g_confinement;
std::string g_sealed;
std::vector<KeTensor> g_tensors;

bool put(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = static_cast<ssize_t>(strlen(text));
  const bool done = write(fd, text, static_cast<size_t>(n)) == n;
  close(fd);
  return done;
}

bool fresh(const char* where, const char* options, unsigned long flags) {
  return mount("none", where, "tmpfs", flags | MS_NOSUID | MS_NODEV, options) == 0;
}

}  // namespace

extern "C" {

// In the reaper: namespaces for the candidate that it forks next. Returns 0 or errno.
int ke_isolate(int processes) {
  char uids[64], gids[64];
  snprintf(uids, sizeof uids, "%d %d 1\n", geteuid(), geteuid());
  snprintf(gids, sizeof gids, "%d %d 1\n", getegid(), getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | (processes != 0 ? CLONE_NEWPID : 0)) != 0) return errno;
  const bool mapped = put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", uids) &&
                      put("/proc/self/gid_map", gids);
  return mapped ? 0 : errno;
}

// In the candidate's process: its own temporary directory (``TEMPORARY`` of ``boxes.py``) and the `library` directory in it, both writable, and nothing of /proc if `hide_proc`.
int ke_settle(const char* library, uint64_t bytes, int hide_proc) {
  char options[64];
  snprintf(options, sizeof options, "mode=0700,size=%llu", static_cast<unsigned long long>(bytes));
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (!fresh("/ke/tmp", options, 0) || mkdir(library, 0755) != 0 || !fresh(library, options, 0)) return errno;
  if (hide_proc != 0 && !fresh("/proc", "mode=0555,size=4k,nr_inodes=2", MS_RDONLY)) return errno;
  return 0;
}

// `library` is complete: read-only from here on, and no privilege of the namespace is left.
int ke_settled(const char* library) {
  if (mount(nullptr, library, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
    return errno;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {};
  return syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

// Whoever made this process holds it: it dies with its parent, and the controller may read its memory, which the
// kernel denies after a change of namespaces.
int ke_hold() {
  return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno;
}

// Takes the descriptors. `outputs_fd` -1: the controller reads the candidate's own memory. Returns the number of tensors.
int ke_prepare(int configuration_fd, int report_fd, int inputs_fd, int outputs_fd) {
  Reader r(configuration_fd);
  close(configuration_fd);
  g_confinement = Confinement::from(r);
  g_sealed = r.text();
  g_report = static_cast<Report*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0));
  if (g_report == MAP_FAILED) _exit(75);
  const uint32_t sets = r.get<uint32_t>(), n_in = r.get<uint32_t>(), n_out = r.get<uint32_t>();
  g_stain = r.get<uint32_t>() != 0;
  g_tensors = map_buffers(r, sets, n_in, n_out, inputs_fd, outputs_fd);
  return static_cast<int>(g_tensors.size());
}

// Address of the i-th tensor, sets x (inputs, outputs).
uint64_t ke_address(int i) { return reinterpret_cast<uint64_t>(g_tensors[static_cast<size_t>(i)].data); }

// Returns the layers that hold.
uint32_t ke_confine() {
  watch_signals();
  return confine(g_confinement);
}

// Whether foreign code may run with these layers.
int ke_enough(uint32_t layers) { return (layers & g_confinement.required) == g_confinement.required; }

// The stricter filter, for every thread there is. Returns 0, errno, or the id of a thread that could not follow.
int ke_seal() {
  struct sock_fprog program;
  program.len = static_cast<unsigned short>(g_sealed.size() / sizeof(struct sock_filter));
  program.filter = reinterpret_cast<struct sock_filter*>(const_cast<char*>(g_sealed.data()));
  if (program.len == 0) return 0;
  const long done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  return done == -1 ? errno : static_cast<int>(done);
}

void ke_note(uint32_t kind, const char* text) { note(kind, text); }

void ke_stain_stack() {
  if (g_stain) stain_stack();
}
}
