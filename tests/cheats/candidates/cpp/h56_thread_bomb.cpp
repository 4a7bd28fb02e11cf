// H56 resource sabotage: threads without end.
// Source: KernelGuard THREAD_INJECTION, https://pypi.org/project/kernelguard/
// Hopes: that threads are not counted as processes are.
#include <pthread.h>
#include <unistd.h>

#include "ke_abi.h"

static void* wait(void*) {
  for (;;) sleep(1000);
}

extern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) {
  pthread_t t;
  for (int i = 0; i < 100000; ++i)
    if (pthread_create(&t, nullptr, wait, nullptr) != 0) return KE_OK;
  return KE_OK;
}
