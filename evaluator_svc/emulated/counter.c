// counter.c: a plugin of QEMU (TCG plugin API 1) that counts what a kernel executes and ends whoever leaves the rules.
//
// Counting is on between the harness's two marks, which count by their address alone. Outside of them nothing but the
// harness may run; inside, no system call is made. What was seen lies in a page that the controller maps, too.
// QEMU's header is not packaged everywhere, so the few declarations it takes are here.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
typedef uint64_t plugin_id;
typedef uint32_t meminfo;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, meminfo, uint64_t, void *), int, int,
                                      void *);
unsigned qemu_plugin_mem_size_shift(meminfo);
bool qemu_plugin_mem_is_store(meminfo);

// Places in harness.S.
enum { TEXT = 0x40000000, BEGIN = TEXT + 0x200, END = TEXT + 0x20c, TEXT_END = TEXT + 0x400 };
// Classes, in the order of `counts.CLASSES`.
enum { INT, MUL, DIV, LOAD, STORE, BRANCH, FLOAT, FDIV, VSET, VLOAD, VLOADS, VSTORE, VSTORES, VALU, VDIV, VRED, VPERM, OTHER, CLASSES };
// Why it was ended, in the order of `ending.WHY`.
enum { FINE, SYSCALL, ELSEWHERE, MARKS, INPUT, BEYOND, STACK };
enum { INPUTS = 256 };

struct seen {
  // Written by the controller.
  uint64_t calls, reserved, inputs;
  struct { uint64_t begin, end; } input[INPUTS];
  // Written here.
  uint64_t why, detail, begun, ended, exited, code;
  uint64_t count[CLASSES], work[CLASSES];  // work: eighths of a vector register
  uint64_t loaded, stored, elements;
};
static struct seen *seen;
static uint64_t on, lmul = 64;  // in eighths; as large as can be until it is known

static void end(uint64_t why, uint64_t detail) {
  seen->why = why;
  seen->detail = detail;
  _exit(120);
}

static uint64_t weight(uint64_t packed) {  // class, or with a fixed weight or a doubled one
  const uint64_t fixed = packed >> 8 & 0xff, eighths = fixed ? fixed * 8 : lmul < 8 ? 8 : lmul;
  return packed >> 16 & 1 ? 2 * eighths : eighths;
}
static void on_instruction(unsigned cpu, void *data) {
  const uint64_t packed = (uint64_t)data, class = packed & 0xff;
  if (!on) end(ELSEWHERE, 0);
  seen->count[class]++;
  if (class >= VLOAD && class <= VPERM) seen->work[class] += weight(packed);
}
static void on_vset(unsigned cpu, void *data) {
  static const uint64_t of[8] = {8, 16, 32, 64, 64, 1, 2, 4};
  if (!on) end(ELSEWHERE, 0);
  seen->count[VSET]++;
  lmul = (uint64_t)data == 0xff ? 64 : of[(uint64_t)data & 7];  // a type from a register is not seen here
}
static void on_harness(unsigned cpu, void *data) {
  const uint64_t at = (uint64_t)data;
  if (at == BEGIN) {
    if (on || seen->begun == seen->calls) end(MARKS, at);
    seen->begun++;
    on = 1;
    lmul = 64;
  } else if (at == END) {
    if (!on) end(MARKS, at);
    seen->ended++;
    on = 0;
  } else if (on && at > BEGIN && at < END) {
    seen->count[at == BEGIN + 4 ? INT : BRANCH]++;
  } else if (on) {
    end(MARKS, at);
  }
}
static void on_memory(unsigned cpu, meminfo info, uint64_t at, void *data) {
  const uint64_t bytes = 1u << qemu_plugin_mem_size_shift(info), class = (uint64_t)data;
  if (at >= seen->reserved) end(BEYOND, at);
  const bool store = qemu_plugin_mem_is_store(info);
  if (store)
    for (uint64_t i = 0; i < seen->inputs; ++i)
      if (at + bytes > seen->input[i].begin && at < seen->input[i].end) end(INPUT, i);
  if (class == VLOADS || class == VSTORES) seen->elements++;
  if (store) seen->stored += bytes; else seen->loaded += bytes;
}

static unsigned compressed(uint32_t w) {
  const unsigned f = w >> 13 & 7;
  switch (w & 3) {
    case 0: return f == 0 ? INT : f < 4 ? LOAD : STORE;
    case 1: return f >= 5 ? BRANCH : INT;
    default: return f == 0 ? INT : f < 4 ? LOAD : f > 4 ? STORE : (w >> 2 & 31) == 0 ? BRANCH : INT;
  }
}
static unsigned vector(uint32_t w) {
  const unsigned f3 = w >> 12 & 7, f6 = w >> 26, vs1 = w >> 15 & 31;
  const unsigned twice = 1u << 16;
  if (f3 == 1 || f3 == 5) {
    if (f6 == 0x20 || f6 == 0x21) return VDIV;
    if (f3 == 1 && (f6 == 1 || f6 == 3 || f6 == 5 || f6 == 7 || f6 == 0x31 || f6 == 0x33)) return VRED;
    if (f3 == 1 && f6 == 0x13 && vs1 == 0) return VDIV;  // square root
    if (f6 == 0x0e || f6 == 0x0f) return VPERM;
    return f6 >= 0x30 || (f3 == 1 && f6 == 0x12 && vs1 >= 8) ? VALU | twice : VALU;
  }
  if (f3 == 2 || f3 == 6) {
    if (f3 == 2 && f6 < 8) return VRED;
    if (f6 >= 0x20 && f6 < 0x24) return VDIV;
    if (f6 == 0x0e || f6 == 0x0f || f6 == 0x17) return VPERM;
    return f6 >= 0x30 ? VALU | twice : VALU;
  }
  if (f6 == 0x30 || f6 == 0x31) return VRED;
  if (f6 == 0x0c || f6 == 0x0e || (f6 == 0x0f && f3 != 0)) return VPERM;
  if (f3 == 3 && f6 == 0x27) return VALU | (vs1 + 1) << 8;  // whole registers are moved
  return f6 >= 0x2c && f6 <= 0x2f ? VALU | twice : VALU;
}
static unsigned class_of(uint32_t w, size_t size) {
  if (size == 2) return compressed(w);
  const unsigned f3 = w >> 12 & 7, mop = w >> 26 & 3, whole = mop == 0 && (w >> 20 & 31) == 8 ? (w >> 29) + 1 : 0;
  const bool segments = mop != 0 || (!whole && w >> 29 != 0), scalar = f3 >= 1 && f3 <= 4;
  switch (w & 0x7f) {
    case 0x03: return LOAD;
    case 0x23: return STORE;
    case 0x63: case 0x67: case 0x6f: return BRANCH;
    case 0x33: case 0x3b: return w >> 25 != 1 ? INT : f3 >= 4 ? DIV : MUL;
    case 0x13: case 0x1b: case 0x37: case 0x17: return INT;
    case 0x07: return scalar ? LOAD : (segments ? VLOADS : VLOAD) | whole << 8;
    case 0x27: return scalar ? STORE : (segments ? VSTORES : VSTORE) | whole << 8;
    case 0x43: case 0x47: case 0x4b: case 0x4f: return FLOAT;
    case 0x53: return (w >> 27 & 31) == 3 || (w >> 27 & 31) == 0xb ? FDIV : FLOAT;
    case 0x57: return f3 == 7 ? VSET : vector(w);
    default: return OTHER;
  }
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) {
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); ++i) {
    struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(tb, i);
    const uint64_t at = qemu_plugin_insn_vaddr(one);
    if (at >= TEXT && at < TEXT_END) {
      qemu_plugin_register_vcpu_insn_exec_cb(one, on_harness, 0, (void *)at);
      continue;
    }
    uint32_t w = 0;
    const size_t size = qemu_plugin_insn_size(one);
    memcpy(&w, qemu_plugin_insn_data(one), size < 4 ? size : 4);
    const uint64_t packed = class_of(w, size), class = packed & 0xff;
    if (class == VSET) {
      const uint64_t type = w >> 31 == 0 ? w >> 20 & 0x7ff : w >> 30 == 3 ? w >> 20 & 0x3ff : 0xff;
      qemu_plugin_register_vcpu_insn_exec_cb(one, on_vset, 0, (void *)(w >> 30 == 2 ? 0xff : type & 7));
    } else {
      qemu_plugin_register_vcpu_insn_exec_cb(one, on_instruction, 0, (void *)packed);
    }
    qemu_plugin_register_vcpu_mem_cb(one, on_memory, 0, 3, (void *)class);
  }
}
static void on_syscall(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                       uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  if (on || (number != 222 && number != 94)) end(SYSCALL, (uint64_t)number);
  if (number == 94) {
    seen->exited = 1;
    seen->code = a;
  }
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
  int page = -1;
  for (int i = 0; i < argc; ++i)
    if (strncmp(argv[i], "page=", 5) == 0) page = atoi(argv[i] + 5);
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
  if (page < 0 || seen == MAP_FAILED) return 1;
  close(page);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
  return 0;
}
