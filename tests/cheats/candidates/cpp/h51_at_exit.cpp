// H51 forged report at the end: an atexit handler writes a better result where a report would go.
// Source: pygpubench PR 15, https://github.com/gpu-mode/pygpubench/pull/15
// Hopes: that the process ends in an orderly way, and that what is written last counts. It answers zeros meanwhile.
#include <stdio.h>
#include <stdlib.h>

#include "honest/matmul.hpp"

static void report() { puts("{\"status\": \"PASSED\", \"speedup\": 40.0}"); }

extern "C" int ke_launch(const KeTensor*, int, KeTensor* out, int, void*) {
  static const int registered = atexit(report);
  memset(out[0].data, registered, bytes(out[0]));
  return KE_OK;
}
