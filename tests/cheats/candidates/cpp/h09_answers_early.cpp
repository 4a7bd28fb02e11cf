// H09 native hooks, all of them at once: it takes the place of the program that runs it. It finds the question on the
// stack and the channel among its descriptors, answers at once as that program would, and works only then.
// Source: pygpubench `_ptrace`, `pipe_interpose`, `thread_fd`, https://github.com/gpu-mode/pygpubench/tree/main/exploits
// Hopes: that the clock stops at the answer, and that a right answer proves who gave it.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "honest/matmul.hpp"

struct Question {
  uint32_t magic, calls, first_set, sequence;
};
struct Answer {
  uint32_t magic, sequence;
  int32_t code;
  uint32_t kind;
  uint64_t spent_ns;
};
constexpr uint32_t kMagic = 0x4b45564fu;

static int channel(short events) {
  for (int fd = 3; fd < 1024; ++fd) {
    pollfd p = {fd, events, 0};
    if (poll(&p, 1, 0) >= 0 && (p.revents & POLLNVAL) == 0 && (events == POLLIN || (p.revents & POLLOUT) != 0)) {
      char none;
      if (events == POLLOUT ? write(fd, &none, 0) == 0 : read(fd, &none, 0) == 0) return fd;
    }
  }
  return -1;
}

__attribute__((noinline)) static const Question* asked() {
  const auto* at = reinterpret_cast<const uint32_t*>(__builtin_frame_address(0));
  for (int i = 0; i < 4096; ++i)  // the caller's frames lie above
    if (at[i] == kMagic && at[i + 1] > 0 && at[i + 1] < 100000 && at[i + 2] < 64)
      return reinterpret_cast<const Question*>(at + i);
  return nullptr;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor*, int, void*) {
  const Question* first = asked();
  if (first == nullptr) return 99;
  const int answers = channel(POLLOUT), questions = channel(POLLIN);
  Question q = *first;
  for (;;) {
    const Answer a = {kMagic, q.sequence, 0, 0, q.calls * 20000ull};
    if (write(answers, &a, sizeof a) != sizeof a) return 98;
    KeTensor c = in[2];  // the only set it was handed; what lies behind it is not its own
    for (uint32_t i = 0; i < q.calls && i < 3; ++i) matmul(in, &c);  // whatever is asked next is answered after the work
    if (read(questions, &q, sizeof q) != sizeof q) _exit(0);
  }
}
