// Lets an exception out of the C entry.
#include <stdexcept>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  throw std::runtime_error("no softmax today");
}
