// report.hpp: the page in which a runner says how it died. It is shared with the controller and lies in the
// candidate's reach, so the controller uses it as evidence only.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct Report {
  uint32_t kind;      // Kind
  int32_t signal;     // of a fatal signal
  int32_t code;       // si_code, or errno of a failed load
  uint32_t syscall;   // number of the refused system call
  uint64_t address;   // faulting address
  uint64_t error;     // x86 page fault error code: bit 1 is set by a write
  uint64_t stack;     // stack pointer at the fault
  uint64_t base;      // where the runner mapped the buffers
  uint64_t refused;   // bytes of the largest allocation that failed
  char text[256];     // what() of an exception, dlerror(), path of a refused open
};
static_assert(sizeof(Report) == 312, "the controller unpacks this layout");

enum Kind : uint32_t { NONE = 0, SIGNAL = 1, EXCEPTION = 2, LOAD = 3, CHANNEL = 4, BAD_ALLOC = 5 };

inline Report* g_report = nullptr;

inline void note(uint32_t kind, const char* text) {
  strncpy(g_report->text, text, sizeof g_report->text - 1);
  g_report->kind = kind;
}

inline void on_signal(int signal, siginfo_t* info, void* context) {
  if (g_report->kind == SIGNAL) _exit(128 + signal);  // a fault while reporting: the first cause stands
  const auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  g_report->signal = signal;
  g_report->code = info->si_code;
  g_report->address = reinterpret_cast<uint64_t>(info->si_addr);
  g_report->error = static_cast<uint64_t>(registers[REG_ERR]);
  g_report->stack = static_cast<uint64_t>(registers[REG_RSP]);
  g_report->kind = SIGNAL;
  if (signal == SIGSYS) {
    g_report->syscall = static_cast<uint32_t>(info->si_syscall);
    // openat has its path in the second argument, execve and open in the first.
    const auto* path = reinterpret_cast<const char*>(info->si_syscall == 257 ? registers[REG_RSI] : registers[REG_RDI]);
    if (info->si_syscall == 257 || info->si_syscall == 59 || info->si_syscall == 2) note(SIGNAL, path);
  }
  _exit(128 + signal);
}

// One handler for every fatal signal, on its own stack so that an overflown stack is reported too.
inline void watch_signals() {
  stack_t stack = {};
  stack.ss_size = 65536;
  stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ})
    sigaction(signal, &action, nullptr);
}
