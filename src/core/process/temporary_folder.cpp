#include "core/process/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "cache/store/files.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/file_descriptor.hpp"
#include "core/process/per_process.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "kiln-temporary-";

int open_folder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Whether the folder is this user's and its process has ended. A folder is made before it is
// locked, so one made in the last minute is left alone.
bool is_abandoned(const std::string& path) {
  constexpr std::time_t long_enough = 60;  // seconds
  const FileDescriptor folder(open_folder(path));
  struct stat status;
  return folder && fstat(folder.get(), &status) == 0 && status.st_uid == geteuid() &&
         status.st_mtime + long_enough < std::time(nullptr) &&
         flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_abandoned(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const std::string path = entry->path().string();
    std::error_code ignored;
    if (is_abandoned(path)) fs::remove_all(path, ignored);
  }
}

// Removes abandoned folders, once per process, because a temporary directory can be large.
void remove_abandoned_once(const std::string& directory) {
  static constinit Once<bool> done("abandoned folders");
  done.get([&] {
    remove_abandoned(directory);
    return true;
  });
}

std::string make_folder() {
  const std::string directory = temporary_directory();
  remove_abandoned_once(directory);
  std::string path = cat(directory, "/", prefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    fail(KILN_STATUS_EXECUTION_FAILED, "no temporary folder like ", path,
         " can be made: ", std::strerror(errno));
  return path;
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(make_folder()), lock_(open_folder(path_)) {
  // Fails on file systems without locks, where a folder is safe for a minute only.
  if (lock_.get() >= 0) static_cast<void>(flock(lock_.get(), LOCK_EX | LOCK_NB));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(std::string_view name, std::span<const std::byte> bytes) const {
  std::string path = cat(path_, "/", name);
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (const int error = file ? cache::write_all(file.get(), bytes) : errno)
    fail(KILN_STATUS_EXECUTION_FAILED, path, " cannot be written: ", std::strerror(error));
  return path;
}

std::string TemporaryFolder::write(std::string_view name, std::string_view text) const {
  return write(name, std::as_bytes(std::span(text)));
}

}  // namespace kiln
