#include "tracer.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "support.hpp"

namespace kiln::cache::test {
namespace {

// The watched part lies between two calls of this, which nothing else makes.
constexpr long marker = SYS_getpgid;

bool manages_memory(long call) {
  constexpr long calls[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_brk, SYS_mprotect, SYS_madvise};
  return std::ranges::find(calls, call) != std::end(calls);
}

void* as_data(std::size_t value) { return reinterpret_cast<void*>(value); }

#ifdef __x86_64__
void skip_call(int child) {
  user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  registers.orig_rax = ~0ull;  // no such system call
  ptrace(PTRACE_SETREGS, child, nullptr, &registers);
}
void set_result(int child, int error) {
  user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
  ptrace(PTRACE_SETREGS, child, nullptr, &registers);
}
void cut_transfer(int child, int bytes) {
  user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  if (registers.orig_rax != SYS_read && registers.orig_rax != SYS_write) return;
  registers.rdx = std::min(registers.rdx, static_cast<unsigned long long>(bytes));
  ptrace(PTRACE_SETREGS, child, nullptr, &registers);
}
#else
void skip_call(int) {}
void set_result(int, int) {}
void cut_transfer(int, int) {}
#endif

int ended(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

bool can_fail_calls() {
#ifdef __x86_64__
  return true;
#else
  return false;
#endif
}

Trace trace(const std::function<void()>& prepare, const std::function<int()>& watched,
            Interference interference) {
  constexpr int not_traceable = 99;
  const int child = start_child([&] {
    prepare();
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return not_traceable;
    raise(SIGSTOP);
    syscall(marker, 0);
    const int result = watched();
    syscall(marker, 0);
    return result;
  });
  Trace result;
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) {
    result.status = ended(status);
    return result;
  }
  if (ptrace(PTRACE_SETOPTIONS, child, nullptr,
             as_data(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) != 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return result;
  }
  result.possible = true;
  int markers = 0;
  bool counted = false;  // the call that the child is in
  for (;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) break;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    __ptrace_syscall_info info;
    ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), child, as_data(sizeof info),
           &info);
    const bool entering = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (entering) {
      const long call = static_cast<long>(info.entry.nr);
      markers += call == marker;
      counted = markers == 1 && call != marker && !manages_memory(call);
      if (counted) result.calls.push_back(call);
    }
    const int at = static_cast<int>(result.calls.size()) - 1;
    if (!counted || at < interference.at || (at > interference.at && !interference.onwards))
      continue;
    switch (interference.kind) {
      case Interference::none: break;
      case Interference::kill_before:
        if (entering) kill(child, SIGKILL);
        break;
      case Interference::kill_after:
        if (!entering) kill(child, SIGKILL);
        break;
      case Interference::fail:
        entering ? skip_call(child) : set_result(child, interference.value);
        break;
      case Interference::cut:
        if (entering) cut_transfer(child, interference.value);
        break;
    }
  }
  result.status = ended(status);
  return result;
}

}  // namespace kiln::cache::test
