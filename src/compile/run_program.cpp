#include "compile/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/text.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool is_executable(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// What the child does before it becomes the program: it enters `folder`, has nothing to read, and
// writes both its outputs into `output`.
class ChildActions {
 public:
  ChildActions(const std::string& folder, int output) {
    posix_spawn_file_actions_init(&actions_);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
  }
  ~ChildActions() { posix_spawn_file_actions_destroy(&actions_); }
  ChildActions(const ChildActions&) = delete;
  ChildActions& operator=(const ChildActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::string read_to_end(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string find_program(const std::string& name) {
  const auto absolute = [](const std::string& path) { return fs::absolute(path).string(); };
  if (name.find('/') != std::string::npos) return is_executable(name) ? absolute(name) : "";
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable ? variable : "/usr/local/bin:/usr/bin:/bin";
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
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.ending = std::strerror(errno);
    return result;
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], ChildActions(folder, ends[1]).get(), nullptr,
                                argv.data(), environ);
  close(ends[1]);
  if (error == 0) result.output = read_to_end(ends[0]);
  close(ends[0]);
  if (error != 0) {
    result.ending = std::strerror(error);
    return result;
  }

  result.started = true;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    result.ending = cat("its end is unknown: ", std::strerror(errno));  // SIGCHLD is ignored
    return result;
  }
  result.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.ending = WIFEXITED(status) ? cat("exit status ", WEXITSTATUS(status))
                                    : cat("signal ", WTERMSIG(status));
  return result;
}

}  // namespace kiln
