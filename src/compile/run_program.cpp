#include "compile/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
#include <utility>

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

// Shells move descriptors out of the way to numbers from 10 on. Where the limit does not allow
// that, they say "Invalid argument".
bool has_descriptors_for_shell() {
  constexpr rlim_t least = 16;
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= least;
}

// A file in memory, with a descriptor number above those of the standard streams and status_file.
int make_memory_file() {
  const FileDescriptor file(memfd_create("kiln-program-output", MFD_CLOEXEC));
  if (!file) return -1;
  const int number = fcntl(file.get(), F_DUPFD_CLOEXEC, status_file + 1);
  if (number < 0 && errno == EINVAL) errno = EMFILE;  // the limit on descriptors is below that
  return number;
}

// What the child does before it becomes the supervising shell. Each of these actions needs memory;
// a child that lacked one would write where it must not.
class ChildActions {
 public:
  ChildActions(const std::string& folder, int output, int status)
      : error_(posix_spawn_file_actions_init(&actions_)), made_(error_ == 0) {
    const auto add = [&](auto action, auto... arguments) {
      if (error_ == 0) error_ = action(&actions_, arguments...);
    };
    if (!folder.empty()) add(posix_spawn_file_actions_addchdir_np, folder.c_str());
    add(posix_spawn_file_actions_addopen, STDIN_FILENO, "/dev/null", O_RDONLY, mode_t{0});
    add(posix_spawn_file_actions_adddup2, output, STDOUT_FILENO);
    add(posix_spawn_file_actions_adddup2, output, STDERR_FILENO);
    add(posix_spawn_file_actions_adddup2, status, status_file);
#if __GLIBC_PREREQ(2, 34)
    add(posix_spawn_file_actions_addclosefrom_np, status_file + 1);
#endif
  }
  ~ChildActions() {
    if (made_) posix_spawn_file_actions_destroy(&actions_);
  }
  ChildActions(const ChildActions&) = delete;
  ChildActions& operator=(const ChildActions&) = delete;
  int error() const { return error_; }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  int error_;
  bool made_;
};

class ChildSignals {
 public:
  ChildSignals() : error_(posix_spawnattr_init(&attributes_)), made_(error_ == 0) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    if (error_ == 0) error_ = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error_ == 0) error_ = posix_spawnattr_setsigmask(&attributes_, &none);
    constexpr short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (error_ == 0) error_ = posix_spawnattr_setflags(&attributes_, flags);
  }
  ~ChildSignals() {
    if (made_) posix_spawnattr_destroy(&attributes_);
  }
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;
  int error() const { return error_; }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
  int error_;
  bool made_;
};

// The variables of a program that runs in `folder`, where it also puts its temporary files: what it
// leaves behind when it is killed goes with the folder.
class ChildEnvironment {
 public:
  explicit ChildEnvironment(const std::string& folder) {
    if (!folder.empty()) add(cat("TMPDIR=", folder));
    if (!has_callers_privileges())
      add("PATH=/usr/local/bin:/usr/bin:/bin");
    else
      for (char** each = environ; each != nullptr && *each != nullptr; ++each)
        if (folder.empty() || !std::string_view(*each).starts_with("TMPDIR=")) add(*each);
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

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
  if (!has_descriptors_for_shell()) return refuse(EMFILE);
  const FileDescriptor output(make_memory_file()), status(output ? make_memory_file() : -1);
  if (!status) return refuse(errno);

  std::vector<char*> argv;
  const auto add = [&](const char* argument) { argv.push_back(const_cast<char*>(argument)); };
  add(supervisor);
  // In a set-user-ID program a shell would become the program's caller, who must not reach the
  // folder.
  if (!has_callers_privileges()) add("-p");
  for (const char* argument : {"-c", supervision, supervisor}) add(argument);
  for (const std::string& argument : arguments) add(argument.c_str());
  add(nullptr);
  const ChildActions actions(folder, output.get(), status.get());
  if (actions.error() != 0) return refuse(actions.error());
  const ChildSignals signals;
  if (signals.error() != 0) return refuse(signals.error());
  pid_t child = 0;
  if (const int error = posix_spawn(&child, supervisor, actions.get(), signals.get(), argv.data(),
                                    ChildEnvironment(folder).get()))
    return refuse(error);

  const std::string shells_end = wait_for(child);
  result.output = read_whole(output.get());
  const std::string code_text = read_whole(status.get());
  int code = -1;
  std::from_chars(code_text.data(), code_text.data() + code_text.size(), code);
  if (code < 0 || code == cannot_execute || code == not_found) {
    const std::string words = result.output.substr(0, result.output.find_last_not_of('\n') + 1);
    result.ending = !words.empty()        ? words
                    : !shells_end.empty() ? shells_end
                                          : "its exit status is lost";
    return result;
  }
  result.started = true;
  result.succeeded = code == 0;
  result.ending =
      code > first_signal ? cat("signal ", code - first_signal) : cat("exit status ", code);
  return result;
}

}  // namespace kiln
