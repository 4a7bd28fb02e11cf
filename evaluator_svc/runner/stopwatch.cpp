// stopwatch.cpp: the controller's clock around one command to a runner, loaded into the controller itself, and what
// empties the caches before it.
// Both readings lie next to the system calls, where no interpreter lock or event loop can delay them.
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static int64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// Sends `command` (none if 0 bytes), waits at most timeout_ms for `reply`.
// Returns bytes read (0: the other side closed), -1: time is up, -2: the command could not be sent.
extern "C" int64_t ke_round_trip(int command_fd, const void* command, int64_t command_bytes, int reply_fd, void* reply,
                                 int64_t reply_bytes, int64_t timeout_ms, int64_t* elapsed_ns) {
  const int64_t begin = now_ns();
  if (command_bytes > 0 && write(command_fd, command, command_bytes) != command_bytes) return -2;
  struct pollfd ready = {reply_fd, POLLIN, 0};
  int64_t left = timeout_ms;
  for (;;) {
    const int n = poll(&ready, 1, static_cast<int>(left));
    if (n > 0) break;
    left = timeout_ms - (now_ns() - begin) / 1000000;
    if ((n == 0) || (n < 0 && errno != EINTR) || left <= 0) return -1;
  }
  int64_t got;
  do got = read(reply_fd, reply, reply_bytes);
  while (got < 0 && errno == EINTR);
  *elapsed_ns = now_ns() - begin;
  return got < 0 ? 0 : got;
}

// Has no cache of any core hold these bytes: what is timed next finds them in memory, whoever wrote them.
extern "C" void ke_flush(const char* begin, int64_t bytes) {
#if defined(__x86_64__)
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < bytes; i += kLine) _mm_clflush(begin + i);
  _mm_mfence();
#else
  (void)begin, (void)bytes;  // nothing is timed on another processor
#endif
}
