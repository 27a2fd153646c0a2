#include "support.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

namespace kiln::cache::test {

namespace fs = std::filesystem;

ScratchDirectory::ScratchDirectory() {
  std::string name = (fs::temp_directory_path() / "kiln-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no scratch directory: " + name);
  root_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

DiskStore::Warn Warnings::sink() {
  return [this](std::string_view text) {
    const std::lock_guard lock(mutex_);
    texts_.emplace_back(text);
  };
}

std::vector<std::string> Warnings::all() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

Key sample_key(int number, const std::string& producer) {
  return Key({{"source", "kernel " + std::to_string(number)}, {"arch", "sm_90a"}}, producer);
}

Entry sample_entry(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {{{"binary", Bytes(begin, begin + text.size())}, {"log", {}}}};
}

std::string text_of(const Entry& entry) {
  const Section* binary = entry.find("binary");
  return binary ? std::string(reinterpret_cast<const char*>(binary->bytes.data()),
                              binary->bytes.size())
                : "(no binary)";
}

Entry vouched_entry(int key, unsigned nonce) {
  std::minstd_rand random(nonce * 64u + static_cast<unsigned>(key) + 1);
  Bytes bytes(8 + random() % 20000);
  std::memcpy(bytes.data(), &key, 4);
  std::memcpy(bytes.data() + 4, &nonce, 4);
  for (std::size_t i = 8; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random() >> 8);
  return {{{"binary", std::move(bytes)}}};
}

bool vouched(const Entry& entry, int key) {
  const Section* binary = entry.find("binary");
  if (!binary || binary->bytes.size() < 8) return false;
  unsigned nonce = 0;
  std::memcpy(&nonce, binary->bytes.data() + 4, 4);
  return binary->bytes == vouched_entry(key, nonce).sections[0].bytes;
}

std::string path_of(const DiskStore& store, const Key& key) {
  return store.directory() + "/v1/" + key.content_hash().substr(0, 2) + "/" + key.content_hash() +
         "-" + key.producer_hash() + ".kiln";
}

Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

void write_bytes(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void make_older(const std::string& path, int seconds) {
  const timespec then{std::time(nullptr) - seconds, 0};
  const timespec times[2] = {then, then};
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    throw std::runtime_error("cannot set the time of " + path);
}

mode_t mode_of(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

std::vector<std::string> files_below(const std::string& path) {
  std::vector<std::string> files;
  std::error_code absent;
  for (const auto& entry : fs::recursive_directory_iterator(path, absent))
    if (!entry.is_directory() || entry.is_symlink()) files.push_back(entry.path().string());
  return files;
}

int start_child(const std::function<int()>& body) {
  std::signal(SIGCHLD, SIG_DFL);  // Boost.Test takes any child's signal for a failure
  const int child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
      std::signal(signal, SIG_DFL);
    alarm(static_cast<unsigned>(count(120, 1800)));
    int status = 255;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  return child;
}

int wait_for(int child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 255;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int in_child(const std::function<int()>& body) { return wait_for(start_child(body)); }

}  // namespace kiln::cache::test
