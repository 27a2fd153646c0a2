#include "compile/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/config.hpp"
#include "core/process/file_descriptor.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool is_executable(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// A file in memory, with a descriptor number above those of the standard streams and status_file.
int make_memory_file() {
  const FileDescriptor file(memfd_create("kiln-program-output", MFD_CLOEXEC));
  constexpr int above_those = 10;
  return file ? fcntl(file.get(), F_DUPFD_CLOEXEC, above_those) : -1;
}

std::string read_whole(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count =
        pread(file, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// The program is the child of a shell, which waits for it and writes its exit status to this
// descriptor. The status of our own child is not reliable: other code of this process may wait for
// it, and the kernel drops it if SIGCHLD is ignored; neither affects the shell's child. Processes
// that the program leaves running keep its outputs open, but nobody waits for the outputs' ends.
constexpr int status_file = 3;
constexpr const char* supervisor = "/bin/sh";
constexpr const char* supervision = "\"$@\" 3>&-; echo $? >&3";

// What the child does before it becomes the supervising shell.
class ChildActions {
 public:
  ChildActions(const std::string& folder, int output, int status) {
    posix_spawn_file_actions_init(&actions_);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, status, status_file);
#if __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions_, status_file + 1);
#endif
  }
  ~ChildActions() { posix_spawn_file_actions_destroy(&actions_); }
  ChildActions(const ChildActions&) = delete;
  ChildActions& operator=(const ChildActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class ChildSignals {
 public:
  ChildSignals() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~ChildSignals() { posix_spawnattr_destroy(&attributes_); }
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

char** child_environment() {
  static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  static char* privileged[] = {path, nullptr};
  return has_callers_privileges() ? environ : privileged;
}

// Waits for the shell. Returns how it ended, if that is not by itself with status 0; "" otherwise,
// or if other code of this process has waited for it.
std::string wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return "";  // it has ended, and somebody else took its status
  if (WIFSIGNALED(status)) return cat("signal ", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : cat("exit status ", WEXITSTATUS(status));
}

// Exit statuses of a shell for programs that it cannot start, or that a signal ended.
constexpr int cannot_execute = 126, not_found = 127, first_signal = 128;

}  // namespace

std::string find_program(const std::string& name) {
  const auto absolute = [](const std::string& path) { return fs::absolute(path).string(); };
  if (name.find('/') != std::string::npos) return is_executable(name) ? absolute(name) : "";
  std::string variable = environment("PATH");
  if (variable.empty()) variable = "/usr/local/bin:/usr/bin:/bin";
  std::string_view folders = variable;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
    if (const std::string path = cat(folder.empty() ? "." : folder, "/", name); is_executable(path))
      return absolute(path);
  }
  return "";
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder) {
  ProgramResult result;
  const auto refuse = [&](int error) {
    result.out_of_memory = error == ENOMEM;
    result.ending = std::strerror(error);
    return result;
  };
  if (access(arguments.at(0).c_str(), X_OK) != 0) return refuse(errno);
  const FileDescriptor output(make_memory_file()), status(output ? make_memory_file() : -1);
  if (!status) return refuse(errno);

  std::vector<char*> argv;
  const auto add = [&](const char* argument) { argv.push_back(const_cast<char*>(argument)); };
  for (const char* argument : {supervisor, "-c", supervision, supervisor}) add(argument);
  for (const std::string& argument : arguments) add(argument.c_str());
  add(nullptr);
  pid_t child = 0;
  if (const int error =
          posix_spawn(&child, supervisor, ChildActions(folder, output.get(), status.get()).get(),
                      ChildSignals().get(), argv.data(), child_environment()))
    return refuse(error);

  const std::string shells_end = wait_for(child);
  result.output = read_whole(output.get());
  const std::string code_text = read_whole(status.get());
  int code = -1;
  std::from_chars(code_text.data(), code_text.data() + code_text.size(), code);
  if (code < 0 || code == cannot_execute || code == not_found) {
    const std::string words = result.output.substr(0, result.output.find_last_not_of('\n') + 1);
    result.ending = words.empty() ? shells_end : words;
    return result;
  }
  result.started = true;
  result.succeeded = code == 0;
  result.ending =
      code > first_signal ? cat("signal ", code - first_signal) : cat("exit status ", code);
  return result;
}

}  // namespace kiln
