/* Runs one kernel on tensors from standard input: for each the number of bytes it spans and a KeTensor, then its bytes
 * if it is an input. Answers with the kernel's code and the bytes of every output and of the margin behind it; an input
 * that has changed is code 100. The marks around the call are instructions without effect. */
#include "ke_abi.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARGIN = 4096 };

static void take(void *to, size_t n) {
  for (char *p = to; n;) {
    ssize_t got = read(0, p, n);
    if (got <= 0) _exit(3);
    p += got, n -= got;
  }
}

static void give(const void *from, size_t n) {
  for (const char *p = from; n;) {
    ssize_t put = write(1, p, n);
    if (put <= 0) _exit(4);
    p += put, n -= put;
  }
}

static KeTensor in[32], out[32];
static int64_t bytes[64];
static void *before[32];

int main(void) {
  int32_t count[2];
  take(count, sizeof count);
  for (int i = 0; i < count[0] + count[1]; ++i) {
    KeTensor *t = i < count[0] ? &in[i] : &out[i - count[0]];
    take(&bytes[i], sizeof bytes[i]);
    take(t, sizeof *t);
    t->data = aligned_alloc(64, (bytes[i] + MARGIN + 63) / 64 * 64);
    memset(t->data, 0xa5, bytes[i] + MARGIN);
    if (i < count[0]) {
      take(t->data, bytes[i]);
      memcpy(before[i] = malloc(bytes[i] + 1), t->data, bytes[i]);
    }
  }
  __asm__ volatile("slti x0, x0, 0x701" ::: "memory");
  int32_t code = ke_launch(in, count[0], out, count[1], NULL);
  __asm__ volatile("slti x0, x0, 0x702" ::: "memory");
  for (int i = 0; i < count[0]; ++i)
    if (memcmp(before[i], in[i].data, bytes[i])) code = 100;
  give(&code, sizeof code);
  for (int i = 0; i < count[1]; ++i) give(out[i].data, bytes[count[0] + i] + MARGIN);
  return 0;
}
