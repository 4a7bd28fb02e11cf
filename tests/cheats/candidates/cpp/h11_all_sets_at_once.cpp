// H11 batch and skip, of sets of buffers: learns the sets that it is called on, and computes all that it knows in the
// first call after a pause; the others of that batch then return at once.
// Source: AgentKernelArena issue 112, https://github.com/AMD-AGI/AgentKernelArena/issues/112, for rotating buffers
// Hopes: that a batch runs over buffers it knows, and is timed as one.
#include <time.h>

#include "honest/softmax.hpp"

static uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

struct Set {
  KeTensor in, out;
  bool done;
};
static Set sets[4096];
static int known = 0;

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static uint64_t last = 0;
  const bool first = now_ns() - last > 20000;
  int mine = 0;
  while (mine < known && sets[mine].in.data != in[0].data) ++mine;
  if (mine == known && known < 4096) sets[known++] = {in[0], out[0], false};
  for (int i = 0; first && i < known; ++i) sets[i].done = false;
  if (!sets[mine].done) {
    softmax(in, out);
    sets[mine].done = true;
    for (int i = 0; first && i < known; ++i) {
      if (!sets[i].done) softmax(&sets[i].in, &sets[i].out);
      sets[i].done = true;
    }
  }
  last = now_ns();
  return KE_OK;
}
