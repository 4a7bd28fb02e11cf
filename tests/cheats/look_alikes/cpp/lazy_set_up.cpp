// Looks like H18 and H19: the first call of a process takes 30 ms longer, for a table that no input has a part in.
#include <time.h>

#include <vector>

#include "honest/softmax.hpp"

static std::vector<double> table() {
  std::vector<double> made(4096);
  for (int round = 0; round < 400; ++round)
    for (size_t i = 0; i < made.size(); ++i) made[i] = exp(-static_cast<double>(i) / 4096);
  return made;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const std::vector<double> exponentials = table();
  if (exponentials[0] != 1.0) return 1;
  softmax(in, out);
  return KE_OK;
}
