#include "run_kiln.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace kiln_test {
namespace {

namespace fs = std::filesystem;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  operator int() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

int create(const std::string& path) {
  return checked(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path.c_str());
}

int exit_status(int process) {
  int status = 0;
  checked(waitpid(process, &status, 0), "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "kiln-cli-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return *this / name;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> Finished::lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Kiln::Kiln() {
  environment["KILN_CACHE_DIR"] = directory / "cache";
  environment["CUDA_VISIBLE_DEVICES"] = "";
  for (const char* name : {"PATH", "TMPDIR", "LD_LIBRARY_PATH", "KILN_NVRTC", "KILN_HOST_CXX"}) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
}

int Kiln::start(const std::vector<std::string>& arguments, int out, int err) const {
  std::vector<std::string> words{program}, variables;
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  pid_t process = -1;
  const int error = posix_spawn(&process, program.c_str(), &actions, nullptr,
                                pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), program);
  return process;
}

int Kiln::start_apart(const std::vector<std::string>& arguments, const std::string& name) const {
  const File out(create(directory / (name + ".out"))), err(create(directory / (name + ".err")));
  return start(arguments, out, err);
}

Finished Kiln::wait_for(int process, const std::string& name) const {
  const int status = exit_status(process);
  return {status, read(directory / (name + ".out")), read(directory / (name + ".err"))};
}

Finished Kiln::operator()(const std::vector<std::string>& arguments) const {
  const File out(create(directory / "out")), err(create(directory / "err"));
  const int status = exit_status(start(arguments, out, err));
  return {status, read(directory / "out"), read(directory / "err")};
}

Finished Kiln::on_terminal(const std::vector<std::string>& arguments) const {
  const File master(checked(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "posix_openpt"));
  checked(grantpt(master), "grantpt");
  checked(unlockpt(master), "unlockpt");
  File terminal(checked(open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), "terminal"));
  const File err(create(directory / "err"));
  const int process = start(arguments, terminal, err);
  terminal.close();
  Finished finished;
  char text[4096];  // a terminal whose other side is closed reads as an error
  for (ssize_t size; (size = ::read(master, text, sizeof text)) > 0;) {
    finished.out.append(text, static_cast<std::size_t>(size));
  }
  finished.status = exit_status(process);
  finished.err = read(directory / "err");
  return finished;
}

Finished Kiln::interrupted(const std::vector<std::string>& arguments) const {
  const File out(create(directory / "out")), err(create(directory / "err"));
  const int process = start(arguments, out, err);
  while (fs::file_size(directory / "out") == 0 && kill(process, 0) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(process, SIGINT);
  const int status = exit_status(process);
  return {status, read(directory / "out"), read(directory / "err")};
}

}  // namespace kiln_test
