// keeper.cpp: stands between the controller and a box, so that no end of the controller leaves anything of a box behind.
//
//   keeper LINE_FD UID -- PROGRAM ARGUMENTS    runs PROGRAM, as user and group UID unless that is -1
//
// It ends with PROGRAM's exit status (128 + signal). When the other end of the line is closed, by the controller or
// with it, it kills what it started. Whatever was orphaned below it becomes its child, in whichever moment of its
// start that was, and is killed too: a parent-death signal alone is missed by a process that has not asked for it yet.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void become(int program, uid_t uid, bool other, pid_t keeper, char** command) {
  // Should memory run out all the same, the kernel is to choose a process of the box, not the controller.
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0 && write(score, "1000", 4) != 4) perror("keeper: oom_score_adj");
  if (score >= 0) close(score);
  setsid();  // a group of its own: a signal to it reaches nothing of ours, and one of ours reaches all of it
  if (other && (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)) {
    perror("keeper: cannot become another user");
    _exit(79);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(79);
  // By descriptor: the program may lie where only the controller may look.
  syscall(SYS_execveat, program, "", command, environ, 0x1000 /* AT_EMPTY_PATH */);
  perror("keeper: cannot start the program");
  _exit(79);
}

// Kills every child, orphans of the box included. False when there is none.
static bool kill_children() {
  DIR* all = opendir("/proc");
  if (all == nullptr) return false;
  bool any = false;
  for (const dirent* entry; (entry = readdir(all)) != nullptr;) {
    const long pid = strtol(entry->d_name, nullptr, 10);
    if (pid <= 0) continue;
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) continue;
    text[got] = 0;
    const char* after = strrchr(text, ')');  // the name before may hold anything
    if (after == nullptr || strtol(after + 4, nullptr, 10) != getpid()) continue;
    any = true;
    kill(static_cast<pid_t>(pid), SIGKILL);
  }
  closedir(all);
  return any;
}

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const int line = atoi(argv[1]);
  const long uid = atol(argv[2]);
  char** command = argv + 4;
  const int program = open(command[0], O_PATH | O_CLOEXEC);
  if (program < 0 || fcntl(line, F_SETFD, FD_CLOEXEC) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    perror("keeper");
    return 79;
  }
  const pid_t keeper = getpid(), child = fork();
  if (child == 0) become(program, static_cast<uid_t>(uid), uid >= 0, keeper, command);
  if (child < 0) return 79;
  // None of the box's channels stays open here: the controller must see when the box closes one.
  if (line > 3) syscall(SYS_close_range, 3, line - 1, 0);
  syscall(SYS_close_range, line + 1, ~0u, 0);
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  struct pollfd events[] = {{line, POLLIN, 0}, {ended, POLLIN, 0}};
  while (poll(events, 2, -1) < 0 && errno == EINTR) {
  }
  // Its group at once, before anything in it can fork again; its namespace dies with the first process in it.
  if (events[0].revents != 0 && kill(-child, SIGKILL) != 0) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // The box has ended: nothing of it may stay. What is killed leaves its own children here, so look again.
  kill(-child, SIGKILL);
  int other = 0;
  for (pid_t reaped; (reaped = waitpid(-1, &other, WNOHANG)) >= 0;)
    if (reaped == 0 && (!kill_children() || waitpid(-1, &other, 0) < 0)) break;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
