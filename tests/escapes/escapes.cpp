// Ways out of a box, one function each: true when it got what it wanted. As a kernel (input 0, element 0 chooses, the
// outcome goes to output 0) it is loaded by the runner; as a program (AS_PROGRAM, the name is its argument) it takes
// the place of a compiler in the build box.
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace {

bool opened(const char* path, int flags = O_RDONLY) {
  const int fd = open(path, flags, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}
bool reads(const char* path) {
  char byte;
  const int fd = open(path, O_RDONLY);
  return fd >= 0 && read(fd, &byte, 1) == 1;
}
bool connects(int family, int type, int protocol) { return socket(family, type, protocol) >= 0; }
bool parents(const char* file) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", getppid() > 0 ? getppid() : 1, file);
  return reads(path);
}
long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) { return syscall(number, a, b, c, d, e); }
bool stays(int count) {  // long enough for whoever counts now and then
  const struct timespec second = {1, 0};
  return count >= 1024 && nanosleep(&second, nullptr) == 0;
}
void* idle(void*) {
  for (struct timespec long_time = {1000, 0};;) nanosleep(&long_time, nullptr);
}

// --- the network ---
bool internet() { return connects(AF_INET, SOCK_STREAM, 0); }
bool internet6() { return connects(AF_INET6, SOCK_DGRAM, 0); }
bool abstract_socket() { return connects(AF_UNIX, SOCK_STREAM, 0); }
bool netlink() { return connects(AF_NETLINK, SOCK_RAW, 0); }
bool packets() { return connects(AF_PACKET, SOCK_RAW, 0); }
bool vsock() { return connects(40, SOCK_STREAM, 0); }

// --- files outside ---
bool absolute_path() { return reads("/etc/passwd"); }
bool parent_directories() { return reads("../../../../../../../../etc/passwd"); }
bool own_root() { return reads("/proc/self/root/etc/passwd"); }
bool first_root() { return reads("/proc/1/root/etc/passwd"); }
bool directory_handle() {
  const int root = open("/", O_RDONLY | O_DIRECTORY);
  const int fd = openat(root, "etc/passwd", O_RDONLY);
  char byte;
  return fd >= 0 && read(fd, &byte, 1) == 1;
}
bool file_handle() {
  struct { struct file_handle head; char data[128]; } handle = {{128, 0, {}}, {}};
  int mount;
  if (name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0) != 0) return false;
  const int root = open("/", O_RDONLY);
  return open_by_handle_at(root, &handle.head, O_RDONLY) >= 0;
}
bool openat2_call() {
  struct { uint64_t flags, mode, resolve; } how = {O_RDONLY, 0, 0};
  return raw(437, AT_FDCWD, reinterpret_cast<long>("/etc/passwd"), reinterpret_cast<long>(&how), sizeof how) >= 0;
}
bool shadow_file() { return reads("/etc/shadow"); }
bool homes() {
  DIR* home = opendir("/root");
  if (home == nullptr) home = opendir("/home");
  return home != nullptr && readdir(home) != nullptr;
}
bool kernel_memory() { return opened("/dev/mem") || opened("/dev/kmem") || opened("/proc/kcore"); }
bool disk_device() { return opened("/dev/vda") || opened("/dev/sda"); }
bool system_switches() { return opened("/proc/sys/kernel/core_pattern", O_WRONLY); }
bool writes_system() { return opened("/usr/lib/ke_escape", O_WRONLY | O_CREAT); }
bool writes_headers() { return opened("/abi/ke_abi.h", O_WRONLY) || opened("/ke/runner", O_WRONLY); }
bool shared_memory_file() { return opened("/dev/shm/ke-escape", O_RDWR | O_CREAT); }
bool makes_device() { return mknod("/build/null", S_IFCHR | 0666, (1 << 8) | 3) == 0 && opened("/build/null"); }
bool mounts() { return raw(SYS_mount, 0, reinterpret_cast<long>("/"), 0, 0x44000) == 0; }
bool own_namespace() { return unshare(CLONE_NEWUSER) == 0; }
bool cloned_namespace() {
  const long pid = raw(SYS_clone, CLONE_NEWUSER | SIGCHLD);
  if (pid == 0) _exit(0);
  return pid > 0;
}
bool other_root() { return chroot("/") == 0; }

// --- other processes ---
bool memory_of_parent() { return parents("mem"); }
bool environment_of_parent() { return parents("environ"); }
bool mappings_of_parent() { return parents("maps"); }
bool descriptors_of_parent() {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", getppid() > 0 ? getppid() : 1);
  return opendir(path) != nullptr;
}
bool traces_parent() { return ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0; }
bool reads_process() {
  char byte;
  struct iovec mine = {&byte, 1}, theirs = {reinterpret_cast<void*>(0x400000), 1};
  return process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0) == 1;
}
bool writes_process() {
  char byte = 0;
  struct iovec mine = {&byte, 1}, theirs = {reinterpret_cast<void*>(0x400000), 1};
  return process_vm_writev(getppid(), &mine, 1, &theirs, 1, 0) == 1;
}
bool takes_descriptor() {
  const long handle = raw(434, getppid() > 0 ? getppid() : 1, 0);
  return handle >= 0 && raw(438, handle, 0, 0) >= 0;
}
bool compares_processes() { return raw(312, getpid(), getppid() > 0 ? getppid() : 1, 0, 0, 1) >= 0; }
bool signals_parent() { return getppid() > 1 && kill(getppid(), 0) == 0; }
bool signals_group() { return kill(0, SIGURG) == 0 && getppid() > 1 && kill(getppid(), 0) == 0; }
bool signals_all() { return kill(-1, SIGURG) == 0 && getppid() > 1; }
bool signals_a_thread_of_parent() { return getppid() > 1 && raw(SYS_tgkill, getppid(), getppid(), SIGURG) == 0; }
bool queues_signal() {
  siginfo_t info = {};
  info.si_code = -1;
  return getppid() > 1 && raw(SYS_rt_sigqueueinfo, getppid(), SIGURG, reinterpret_cast<long>(&info)) == 0;
}
bool kills_reaper() { return kill(1, SIGKILL) == 0 && getppid() != 1; }
bool signals_by_handle() {
  const long handle = getppid() > 1 ? raw(434, getppid(), 0) : -1;
  return handle >= 0 && raw(424, handle, 0, 0, 0) == 0;
}
bool types_into_terminal() {
  char key = '\n';
  return ioctl(0, TIOCSTI, &key) == 0;
}

// --- the kernel's surface ---
bool io_uring() {
  char parameters[120] = {};
  return raw(425, 1, reinterpret_cast<long>(parameters)) >= 0;
}
bool user_faults() { return raw(323, 1) >= 0; }
bool performance_counters() {
  char attributes[128] = {1, 0, 0, 0, 112};
  return raw(298, reinterpret_cast<long>(attributes), 0, -1, -1, 0) >= 0;
}
bool bpf_call() {
  char attributes[128] = {};
  return raw(321, 5, reinterpret_cast<long>(attributes), sizeof attributes) >= 0;
}
bool key_ring() { return raw(250, 0, -3, 1) >= 0; }
bool adds_key() { return raw(248, reinterpret_cast<long>("user"), reinterpret_cast<long>("ke"), reinterpret_cast<long>("x"), 1, -3) >= 0; }
bool kernel_log() { return raw(103, 3, 0, 0) >= 0 && raw(103, 10) >= 0; }
bool sets_clock() {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return clock_settime(CLOCK_REALTIME, &t) == 0;
}
bool adjusts_clock() {
  struct timex t = {};
  t.modes = ADJ_TICK;
  t.tick = 10000;
  return adjtimex(&t) >= 0;
}
bool loads_module() { return raw(175, reinterpret_cast<long>(""), 0, reinterpret_cast<long>("")) == 0; }
bool port_access() { return raw(172, 3) == 0; }
bool reboots() { return raw(169, 0xfee1dead, 672274793, 0x89abcdef) == 0; }
bool calls_as_i386() {
#if defined(__x86_64__)
  long result = 359;  // socket(AF_INET, SOCK_STREAM, 0)
  asm volatile("int $0x80" : "+a"(result) : "b"(2L), "c"(1L), "d"(0L) : "memory", "r8", "r9", "r10", "r11");
  return result >= 0;
#else
  return false;
#endif
}
bool calls_as_x32() { return raw(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0) >= 0; }
bool watches_calls() {  // a filter of its own that hands calls to a supervisor
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  return raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, reinterpret_cast<long>(&program)) >= 0;
}

// --- more than its share ---
bool raises_priority() { return setpriority(PRIO_PROCESS, 0, -20) == 0; }
bool real_time() {
  struct sched_param parameter = {1};
  return sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;
}
bool raises_limit() {
  const struct rlimit wanted = {RLIM_INFINITY, RLIM_INFINITY};
  return setrlimit(RLIMIT_AS, &wanted) == 0 || setrlimit(RLIMIT_NPROC, &wanted) == 0;
}
bool locks_memory() {
  const size_t bytes = 1u << 30;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p != MAP_FAILED && mlock(p, bytes) == 0;
}
bool huge_pages() {
  return mmap(nullptr, 1ul << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}
bool too_much_memory() {
  return mmap(nullptr, 1ul << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}
bool shared_segment() { return shmget(IPC_PRIVATE, 1u << 30, IPC_CREAT | 0600) >= 0; }
bool writes_large_file() {
  const int fd = open("/build/large", O_WRONLY | O_CREAT, 0644);
  return fd >= 0 && ftruncate(fd, 1l << 40) == 0;
}
bool many_threads() {
  int count = 0;
  for (; count < 4096; ++count) {
    char* stack = static_cast<char*>(mmap(nullptr, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
    if (stack == MAP_FAILED ||
        clone([](void*) { idle(nullptr); return 0; }, stack + 16384,
              CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, nullptr) < 0)
      break;
  }
  return stays(count);
}
bool many_processes() {
  int count = 0;
  for (; count < 4096; ++count) {
    const int pid = fork();
    if (pid == 0) idle(nullptr);
    if (pid < 0) break;
  }
  return stays(count);
}
bool timer_signals() {
  const struct itimerval timer = {{0, 1000}, {0, 1000}};
  return setitimer(ITIMER_REAL, &timer, nullptr) == 0;
}
bool runs_program() {
  char* const arguments[] = {const_cast<char*>("/bin/true"), nullptr};
  execv("/bin/true", arguments);
  return false;
}
bool runs_from_memory() {
  const int fd = static_cast<int>(raw(319, reinterpret_cast<long>("ke"), 0));
  return fd >= 0;
}
bool other_personality() { return personality(ADDR_NO_RANDOMIZE) >= 0; }
bool other_processor() {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  return sched_setaffinity(0, sizeof all, &all) == 0;
}
bool undumpable() { return prctl(PR_SET_DUMPABLE, 0) == 0; }
bool renamed() { return prctl(PR_SET_NAME, "controller") == 0; }
bool outlives_parent() { return prctl(PR_SET_PDEATHSIG, 0) == 0; }
bool handles_signals() { return signal(SIGSYS, SIG_IGN) != SIG_ERR; }
bool own_session() { return setsid() >= 0; }
bool makes_file() { return opened("ke-escape", O_WRONLY | O_CREAT) || opened("/tmp/ke-escape", O_WRONLY | O_CREAT); }
bool makes_link() { return symlink("/etc/passwd", "/tmp/ke-link") == 0; }
bool makes_pipe() { return mkfifo("/tmp/ke-pipe", 0644) == 0; }
// Which descriptors there are, as a bit set.
uint64_t descriptors() {
  uint64_t found = 0;
  struct stat about;
  for (int fd = 0; fd < 64; ++fd)
    if (fstat(fd, &about) == 0) found |= 1ull << fd;
  return found;
}

struct Escape {
  const char* name;
  bool (*attempt)();
};
#define ESCAPE(name) {#name, name}
constexpr Escape kEscapes[] = {
    ESCAPE(internet), ESCAPE(internet6), ESCAPE(abstract_socket), ESCAPE(netlink), ESCAPE(packets), ESCAPE(vsock),
    ESCAPE(absolute_path), ESCAPE(parent_directories), ESCAPE(own_root), ESCAPE(first_root), ESCAPE(directory_handle),
    ESCAPE(file_handle), ESCAPE(openat2_call), ESCAPE(shadow_file), ESCAPE(homes), ESCAPE(kernel_memory),
    ESCAPE(disk_device), ESCAPE(system_switches), ESCAPE(writes_system), ESCAPE(writes_headers),
    ESCAPE(shared_memory_file), ESCAPE(makes_device), ESCAPE(mounts), ESCAPE(own_namespace), ESCAPE(cloned_namespace),
    ESCAPE(other_root), ESCAPE(memory_of_parent), ESCAPE(environment_of_parent), ESCAPE(mappings_of_parent),
    ESCAPE(descriptors_of_parent), ESCAPE(traces_parent), ESCAPE(reads_process), ESCAPE(writes_process),
    ESCAPE(takes_descriptor), ESCAPE(compares_processes), ESCAPE(signals_parent), ESCAPE(signals_group),
    ESCAPE(signals_all), ESCAPE(signals_a_thread_of_parent), ESCAPE(queues_signal), ESCAPE(signals_by_handle), ESCAPE(kills_reaper),
    ESCAPE(types_into_terminal), ESCAPE(io_uring), ESCAPE(user_faults), ESCAPE(performance_counters), ESCAPE(bpf_call),
    ESCAPE(key_ring), ESCAPE(adds_key), ESCAPE(kernel_log), ESCAPE(sets_clock), ESCAPE(adjusts_clock),
    ESCAPE(loads_module), ESCAPE(port_access), ESCAPE(reboots), ESCAPE(calls_as_i386), ESCAPE(calls_as_x32),
    ESCAPE(watches_calls), ESCAPE(raises_priority), ESCAPE(real_time), ESCAPE(raises_limit), ESCAPE(locks_memory),
    ESCAPE(huge_pages), ESCAPE(too_much_memory), ESCAPE(shared_segment), ESCAPE(writes_large_file),
    ESCAPE(many_threads), ESCAPE(many_processes), ESCAPE(timer_signals), ESCAPE(runs_program), ESCAPE(runs_from_memory),
    ESCAPE(other_personality), ESCAPE(other_processor), ESCAPE(undumpable), ESCAPE(renamed), ESCAPE(outlives_parent),
    ESCAPE(handles_signals), ESCAPE(own_session), ESCAPE(makes_file), ESCAPE(makes_link), ESCAPE(makes_pipe),
};
constexpr int kCount = sizeof kEscapes / sizeof *kEscapes;

}  // namespace

#ifdef AS_PROGRAM
int main(int argc, char** argv) {
  if (argc < 2) {  // what there is, in order
    for (const Escape& escape : kEscapes) puts(escape.name);
    return 0;
  }
  for (const Escape& escape : kEscapes)
    if (strcmp(escape.name, argv[1]) == 0) return escape.attempt() ? 10 : 11;
  return 12;
}
#else
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const int choice = static_cast<int>(static_cast<const float*>(in[0].data)[0]);
  auto* told = static_cast<float*>(out[0].data);
  const uint64_t mine = descriptors();
  told[1] = static_cast<float>(mine & 0xffff);
  told[2] = static_cast<float>(mine >> 16);
  told[0] = choice < 0 || choice >= kCount ? 0.0f : kEscapes[choice].attempt() ? 1.0f : 0.5f;
  return KE_OK;
}
#endif
