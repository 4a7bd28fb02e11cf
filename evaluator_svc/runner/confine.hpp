// confine.hpp: the layers of the sandbox that a process puts on itself before it lets foreign code run:
// resource limits, Landlock and seccomp. Namespaces and mounts are made by the controller, around the process.
// Each layer that holds sets its bit; a layer that the kernel refuses is left out of the level, never hidden.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

enum Layer : uint32_t { LAYER_RLIMITS = 1, LAYER_LANDLOCK = 2, LAYER_SECCOMP = 4, LAYER_USER = 8 };

// Reads the controller's configuration: little-endian fields one after another. Short input ends the process.
class Reader {
 public:
  explicit Reader(int fd) {
    char chunk[65536];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0) bytes_.append(chunk, static_cast<size_t>(n));
  }
  template <class T>
  T get() {
    T value;
    memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const uint32_t n = get<uint32_t>();
    return std::string(take(n), n);
  }

 private:
  const char* take(size_t n) {
    if (bytes_.size() - at_ < n) _exit(71);
    const char* p = bytes_.data() + at_;
    at_ += n;
    return p;
  }
  std::string bytes_;
  size_t at_ = 0;
};

struct Confinement {
  struct Path {
    bool writable;
    std::string path;
  };
  uint64_t address_space, cpu_s, file_bytes, processes, open_files, stack_bytes;
  int32_t user;  // whom to become, -1 to stay: bubblewrap's boxes have become it before
  std::vector<Path> paths;
  std::string filter;
  uint32_t required;  // layers without which nothing foreign may run

  static Confinement from(Reader& r) {
    Confinement c;
    c.address_space = r.get<uint64_t>();
    c.cpu_s = r.get<uint64_t>();
    c.file_bytes = r.get<uint64_t>();
    c.processes = r.get<uint64_t>();
    c.open_files = r.get<uint64_t>();
    c.stack_bytes = r.get<uint64_t>();
    c.user = r.get<int32_t>();
    for (uint32_t n = r.get<uint32_t>(); n > 0; --n) {
      const bool writable = r.get<uint32_t>() != 0;
      c.paths.push_back({writable, r.text()});
    }
    c.filter = r.text();
    c.required = r.get<uint32_t>();
    return c;
  }
};

inline bool limit(int which, uint64_t value) {
  struct rlimit old;
  if (getrlimit(which, &old) != 0) return false;
  if (old.rlim_max != RLIM_INFINITY && old.rlim_max < value) value = old.rlim_max;
  const struct rlimit wanted = {value, value};
  return setrlimit(which, &wanted) == 0;
}

inline bool set_limits(const Confinement& c) {
  return limit(RLIMIT_CORE, 0) && limit(RLIMIT_AS, c.address_space) && limit(RLIMIT_CPU, c.cpu_s) &&
         limit(RLIMIT_FSIZE, c.file_bytes) && limit(RLIMIT_NPROC, c.processes) &&
         limit(RLIMIT_NOFILE, c.open_files) && limit(RLIMIT_STACK, c.stack_bytes);
}

// Landlock by number: build machines often have older headers than kernels. Rights as in linux/landlock.h.
// Two steps, because the paths may lie where the user that the process becomes in between may not look.
// Returns a ruleset, -1 without Landlock.
inline int landlock_rules(const std::vector<Confinement::Path>& paths) {
  constexpr long kCreate = 444, kAddRule = 445;
  constexpr uint64_t kReadFile = (1u << 0) | (1u << 2), kRead = kReadFile | (1u << 3);  // execute, read; list
  constexpr uint64_t kOfFiles = kReadFile | (1u << 1) | (1u << 14) | (1u << 15);  // + write, truncate, device's ioctl
  const long abi = syscall(kCreate, nullptr, 0, 1);
  if (abi < 1) return -1;
  struct {
    uint64_t fs, net, scoped;
  } attr = {(1u << 13) - 1, 0, 0};
  if (abi >= 2) attr.fs |= 1u << 13;
  if (abi >= 3) attr.fs |= 1u << 14;
  if (abi >= 4) attr.net = 3;
  if (abi >= 5) attr.fs |= 1u << 15;
  if (abi >= 6) attr.scoped = 3;
  const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(syscall(kCreate, &attr, size, 0));
  if (ruleset < 0) return -1;
  bool ok = true;
  for (const auto& p : paths) {
    const int fd = open(p.path.c_str(), O_PATH | O_CLOEXEC);
    struct stat found;
    const bool directory = fd >= 0 && fstat(fd, &found) == 0 && S_ISDIR(found.st_mode);
    struct {
      uint64_t allowed;
      int32_t parent;
    } __attribute__((packed)) rule = {attr.fs & (directory ? (p.writable ? ~0ull : kRead) : (p.writable ? kOfFiles : kReadFile)), fd};
    ok = ok && fd >= 0 && syscall(kAddRule, ruleset, 1, &rule, 0) == 0;
    if (fd >= 0) close(fd);
  }
  if (ok) return ruleset;
  close(ruleset);
  return -1;
}

inline bool set_landlock(int ruleset) {
  constexpr long kRestrict = 446;
  const bool ok = ruleset >= 0 && syscall(kRestrict, ruleset, 0) == 0;
  if (ruleset >= 0) close(ruleset);
  return ok;
}

// Leaves root, and with it every capability. Where there is no other user to become, as in a container that maps one
// only, the capabilities alone: false.
inline bool become_user(int32_t user) {
  const auto id = static_cast<uid_t>(user);
  const bool other = user >= 0 && geteuid() == 0 && setgroups(0, nullptr) == 0 && setresgid(id, id, id) == 0 &&
                     setresuid(id, id, id) == 0;
  if (other) return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;  // the change of user undoes it
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {};
  syscall(SYS_capset, &header, none);
  return false;
}

// A signal to a thread is for one's own threads, abort() sends one so: without namespaces and scopes of Landlock it would
// reach the controller. Which process that is, is known here only; the rest of the filter follows.
inline std::string own_threads_only(const std::string& program) {
  const auto pid = static_cast<uint32_t>(getpid());
  const struct sock_filter first[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pid, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  return std::string(reinterpret_cast<const char*>(first), sizeof first) + program;
}

inline bool set_seccomp(const std::string& program) {
  struct sock_fprog prog;
  prog.len = static_cast<unsigned short>(program.size() / sizeof(struct sock_filter));
  prog.filter = reinterpret_cast<struct sock_filter*>(const_cast<char*>(program.data()));
  return prog.len > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0;
}

inline uint32_t confine(const Confinement& c) {
  uint32_t layers = 0;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return layers;
  const int ruleset = landlock_rules(c.paths);
  if (set_limits(c)) layers |= LAYER_RLIMITS;
  if (become_user(c.user)) layers |= LAYER_USER;
  if (set_landlock(ruleset)) layers |= LAYER_LANDLOCK;
  if (set_seccomp(c.filter)) layers |= LAYER_SECCOMP;
  return layers;
}
