/* The host side of a call, on the accelerator: read a job from descriptor 0, call the kernel, write the buffers to 1.
 *
 * It uses no library, lies in a section of its own (build.py looks for system calls everywhere else, profile.py counts
 * everything else), and is all that may make system calls.
 */
#include "ke_abi.h"

#define OURS __attribute__((section(".corvid"), noinline, used))
#define MAPPED_AT 0x100000000L
#define TENSORS 64

static KeTensor tensors[TENSORS];
static char thread_local_block[65536] __attribute__((aligned(64)));

OURS static long call(long number, long a, long b, long c, long d) {
  register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c, a3 __asm__("a3") = d;
  register long a4 __asm__("a4") = -1, a5 __asm__("a5") = 0, a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
  return a0;
}
OURS static void leave(long status) {
  for (;;) call(94, status, 0, 0, 0);
}
OURS static void all(int writing, char *at, long bytes) {
  while (bytes > 0) {
    const long did = call(writing ? 64 : 63, writing ? 1 : 0, (long)at, bytes, 0);
    if (did <= 0) leave(70);
    at += did;
    bytes -= did;
  }
}
OURS void corvid_main(void) {
  int64_t head[2], code[1];
  char *next = (char *)MAPPED_AT;
  all(0, (char *)head, sizeof head);
  const int64_t count = head[0] + head[1];
  if (head[0] < 0 || head[1] < 0 || count > TENSORS) leave(71);
  for (int64_t i = 0; i < count; ++i) {
    int64_t bytes;
    KeTensor *one = &tensors[i];
    all(0, (char *)&bytes, sizeof bytes);
    all(0, (char *)one->shape, sizeof one->shape);
    all(0, (char *)one->strides, sizeof one->strides);
    all(0, (char *)&one->ndim, sizeof one->ndim);
    all(0, (char *)&one->dtype, sizeof one->dtype);
    const long size = (bytes + 8191) / 4096 * 4096;  /* a page between buffers stays unmapped */
    if (call(222, (long)next, size, 3, 0x32) != (long)next) leave(72);
    one->data = next + (size - bytes) / 64 * 64;  /* the end of a buffer lies near the end of its pages */
    all(0, one->data, bytes);
    next += size + 4096;
  }
  code[0] = ke_launch(tensors, (int)head[0], tensors + head[0], (int)head[1], 0);
  all(1, (char *)code, sizeof code);
  next = (char *)MAPPED_AT;
  for (int64_t i = 0; i < count; ++i) {
    int64_t bytes = 1;
    static const char sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1};
    const KeTensor *one = &tensors[i];
    for (int d = 0; d < one->ndim; ++d) bytes *= one->shape[d];
    bytes *= sizes[one->dtype];
    all(1, one->data, bytes);
  }
  leave(0);
}
__attribute__((section(".corvid"), naked, used)) void corvid_start(void) {
  __asm__ volatile(
      ".option push\n.option norelax\n"
      "la gp, __global_pointer$\n"
      ".option pop\n"
      "la tp, %0\n"
      "j corvid_main\n" ::"i"(thread_local_block));
}
