// A libcuda.so.1 without a device: exactly the calls of cuda_driver.py.
//
// $KE_FAKE_CUDA is a file that stands for the device. Its first page holds what tests and hostile kernels set: until
// when the device is busy (u64, ns of CLOCK_MONOTONIC), whether handles are refused (u64), the allocator's mark (u64), and
// for which process it is busy (u64, as that one knows itself; 0: for one that never ends).
// Memory from cuMemAlloc lies in the file, and every process maps the file. Other memory of a process (results of
// torch on the processor) is taken for device memory, too, in allocations of 2 GiB: handles name process and address,
// and it is read by process_vm_readv.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {
constexpr uint64_t kBytes = 256ull << 20, kPage = 4096, kChunk = 1ull << 31, kForeign = 1ull << 46;
constexpr int kInvalid = 1, kNoDevice = 100, kOwn = 201, kRefused = 801;
struct Control { std::atomic<uint64_t> busy_until, refuses, used, busy_for; };
struct Handle { char bytes[64]; };
struct Named { uint64_t magic, in_file, pid, address, size; };  // at the beginning of a handle
constexpr uint64_t kMagic = 0x4b45464b;
char* memory = nullptr;
Control* control = nullptr;
struct Open { uint64_t pid, address, size; } opened[4096];
uint64_t opened_count = 0, inode = 0;

uint64_t base() { return reinterpret_cast<uint64_t>(memory); }
bool on_file(uint64_t p) { return p >= base() + kPage && p < base() + kBytes; }
bool foreign(uint64_t p) { return p >= kForeign && p < kForeign + (opened_count << 32); }
uint64_t* head(uint64_t p) {  // allocations are found by walking: size, then data, both on whole pages
  for (uint64_t at = kPage; at < control->used;) {
    uint64_t* size = reinterpret_cast<uint64_t*>(memory + at);
    if (p - base() >= at && p - base() < at + kPage + *size) return size;
    at += kPage + (*size + kPage - 1) / kPage * kPage;
  }
  return nullptr;
}
uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000ull + uint64_t(t.tv_nsec);
}
// A process in a namespace knows itself by another number: out here it is the one that is called so in there and has
// the device mapped. 0 if there is none.
uint64_t found_by(uint64_t inner) {
  uint64_t found = 0;
  DIR* all = opendir("/proc");
  while (dirent* entry = all ? readdir(all) : nullptr) {
    uint64_t pid = strtoull(entry->d_name, nullptr, 10);
    if (!pid || pid == uint64_t(getpid())) continue;
    std::string line, word, root = "/proc/" + std::to_string(pid);
    std::ifstream status(root + "/status");
    uint64_t named = 0;
    while (std::getline(status, line))
      if (line.rfind("NSpid:", 0) == 0) {
        std::istringstream numbers(line.substr(6));
        while (numbers >> named) {}
      }
    if (named != inner) continue;
    std::ifstream maps(root + "/maps");
    while (std::getline(maps, line)) {
      std::istringstream fields(line);
      for (int i = 0; i < 5; ++i) fields >> word;
      if (word == std::to_string(inode)) found = pid;
    }
  }
  if (all) closedir(all);
  return found;
}
void take_turns() {  // a turn of somebody else's work is waited for
  if (control->busy_for == uint64_t(getpid())) return;
  if (control->busy_until > now() && control->busy_for && !found_by(control->busy_for)) control->busy_until = 0;
  if (control->busy_until <= now()) return;
  timespec t{0, 4000000};
  nanosleep(&t, nullptr);
}
}  // namespace

extern "C" {
int cuInit(unsigned) {
  if (memory) return 0;
  const char* path = getenv("KE_FAKE_CUDA");
  int fd = path ? open(path, O_RDWR) : -1;
  if (fd < 0) return kNoDevice;
  struct stat about;
  if (fstat(fd, &about) == 0) inode = about.st_ino;
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return kNoDevice;
  memory = static_cast<char*>(at);
  control = reinterpret_cast<Control*>(memory);
  uint64_t fresh = 0;
  control->used.compare_exchange_strong(fresh, kPage);
  return 0;
}
int cuDeviceGet(int* device, int) { *device = 0; return 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { *context = memory; return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuDeviceGetAttribute(int* value, int, int) { *value = 1 << 20; return 0; }
int cuCtxSynchronize() { take_turns(); return 0; }
int cuMemAlloc_v2(uint64_t* address, size_t size) {
  uint64_t whole = kPage + (size + kPage - 1) / kPage * kPage, at = control->used.fetch_add(whole);
  if (at + whole > kBytes) return 2;
  *reinterpret_cast<uint64_t*>(memory + at) = size;
  *address = base() + at + kPage;
  return 0;
}
int cuMemFree_v2(uint64_t address) { return on_file(address) ? 0 : kInvalid; }
int cuMemGetAddressRange_v2(uint64_t* start, size_t* size, uint64_t p) {
  if (foreign(p)) {
    const Open& one = opened[(p - kForeign) >> 32];
    *start = kForeign + ((p - kForeign) >> 32 << 32);
    *size = one.size;
  } else if (on_file(p)) {
    uint64_t* found = head(p);
    if (!found) return kInvalid;
    *start = reinterpret_cast<uint64_t>(found) + kPage;
    *size = *found;
  } else {
    *start = p / kChunk * kChunk;
    *size = kChunk;
  }
  return p ? 0 : kInvalid;
}
int cuPointerGetAttribute(uint64_t* value, int, uint64_t p) {
  size_t size;
  return cuMemGetAddressRange_v2(value, &size, p);
}
int cuIpcGetMemHandle(Handle* handle, uint64_t p) {
  if (control->refuses) return kRefused;
  uint64_t start;
  size_t size;
  if (int code = cuMemGetAddressRange_v2(&start, &size, p)) return code;
  Named name{kMagic, on_file(p), on_file(p) ? 0 : uint64_t(getpid()), on_file(p) ? start - base() : start, size};
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &name, sizeof name);
  return 0;
}
int cuIpcOpenMemHandle_v2(uint64_t* address, Handle handle, unsigned) {
  Named name;
  memcpy(&name, &handle, sizeof name);
  if (name.magic != kMagic) return kInvalid;
  if (name.in_file) {
    if (name.address >= kBytes) return kInvalid;
    *address = base() + name.address;
    return 0;
  }
  uint64_t pid = found_by(name.pid);
  if (!pid) return kOwn;
  opened[opened_count] = {pid, name.address, name.size};
  *address = kForeign + (opened_count++ << 32);
  return 0;
}
int cuIpcCloseMemHandle(uint64_t) { return 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t n) {
  if (!foreign(from)) {
    memcpy(to, reinterpret_cast<void*>(from), n);
    return 0;
  }
  const Open& one = opened[(from - kForeign) >> 32];
  iovec local{to, n}, remote{reinterpret_cast<void*>(one.address + ((from - kForeign) & 0xffffffffu)), n};
  return process_vm_readv(pid_t(one.pid), &local, 1, &remote, 1, 0) == ssize_t(n) ? 0 : 700;
}
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t n) {
  if (!on_file(at)) return kInvalid;
  memset(reinterpret_cast<void*>(at), value, n);
  return 0;
}
}
