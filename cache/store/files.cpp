#include "cache/store/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "cache/entry_format.hpp"
#include "cache/store/layout.hpp"
#include "cache/store/private_directory.hpp"
#include "cache/store/quiet_writes.hpp"

namespace kiln::cache {
namespace {

// The first read of an entry's file, enough for a kernel with its source, PTX and log. The rest of
// larger files is read only if these bytes are the beginning of an entry.
constexpr std::size_t first_read_bytes = std::size_t{1} << 20;

// The age of abandoned temporary files. A writer needs milliseconds; an hour also covers different
// clocks of hosts.
constexpr std::time_t orphan_seconds = 3600;

template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

// Reads on until there are `size` bytes, or no more.
void fill(FileBytes& file, int descriptor, std::size_t size) {
  while (file.size < size) {
    const auto count =
        retried([&] { return ::read(descriptor, file.data.get() + file.size, size - file.size); });
    if (count < 0) file.error = errno;
    if (count <= 0) return;
    file.size += static_cast<std::size_t>(count);
  }
}

int open_to_read(const std::string& path) {
  return retried([&] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  });
}

int write_new_file(const std::string& path, std::span<const std::byte> bytes, Access access) {
  const mode_t mode = access == Access::owner ? 0600 : 0666;
  Descriptor file(retried([&] {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  }));
  if (file.get() < 0) return errno;
  // The umask can only have taken bits away. They are set again if the file system allows it;
  // otherwise another process fails to read the entry, which is a miss.
  if (access == Access::owner) static_cast<void>(::fchmod(file.get(), mode));
  if (const int error = write_all(file.get(), bytes)) return error;
  // Quotas and network file systems may report lost bytes only here. EINTR counts as an error too:
  // the descriptor is closed, but it is not known whether the data were written.
  return file.close();
}

}  // namespace

std::string error_text(int error) { return std::system_category().message(error); }

int write_all(int descriptor, std::span<const std::byte> bytes) {
  const QuietWrites quiet;
  while (!bytes.empty()) {
    const auto written = retried([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

FileReader::FileReader(const std::string& path)
    : descriptor_(retried(
          [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); })) {
  if (descriptor_ < 0) error_ = errno;
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileReader::status(struct stat& status) const {
  if (::fstat(descriptor_, &status) == 0) return true;
  error_ = errno;
  return false;
}

std::vector<std::byte> FileReader::read(std::uint64_t offset, std::uint64_t size) const {
  if (descriptor_ < 0) return {};
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto count = retried([&] {
      return ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (count < 0) error_ = errno;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

FileBytes read_entry_file(const std::string& path, uid_t owner) {
  FileBytes file;
  const Descriptor descriptor(open_to_read(path));
  struct stat status;
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
    file.error = errno;
    return file;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  file.refusal = other_writers(status, owner);
  if (!S_ISREG(status.st_mode)) file.refusal = "is not a regular file";
  if (file.refusal.empty() && size > max_entry_bytes)
    file.refusal = "has " + std::to_string(size) + " bytes, more than any entry";
  if (!file.refusal.empty()) return file;
  file.data = std::make_unique_for_overwrite<std::byte[]>(size);
  fill(file, descriptor.get(), std::min<std::size_t>(size, first_read_bytes));
  if (file.error == 0 && file.size < size && announced_size(file.bytes()) == size)
    fill(file, descriptor.get(), size);
  return file;
}

// There is no fsync, which would cost every publisher milliseconds. After a power cut the checksum
// finds an incomplete file, and the kernel is compiled again.
int publish_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes, Access access) {
  const std::string temporary = directory + "/" + temporary_name();
  int error = write_new_file(temporary, bytes, access);
  if (error == EEXIST) return error;  // another process's file, which must stay
  if (error == 0 && std::rename(temporary.c_str(), (directory + "/" + name).c_str()) != 0)
    error = errno;
  if (error != 0) ::unlink(temporary.c_str());  // if this fails, eviction removes it as an orphan
  return error;
}

FileBytes read_whole_file(const std::string& path, std::size_t most) {
  FileBytes file;
  Descriptor descriptor(open_to_read(path));
  if (descriptor.get() < 0) {
    file.error = errno;
    return file;
  }
  struct stat status;
  if (::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    file.error = EINVAL;
    return file;
  }
  const std::size_t size = std::min(most, static_cast<std::size_t>(status.st_size));
  file.data = std::make_unique_for_overwrite<std::byte[]>(size);
  fill(file, descriptor.get(), size);
  return file;
}

int open_or_create(const std::string& path, int flags) {
  const int careful = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int descriptor = retried([&] { return ::open(path.c_str(), flags | careful); });
  if (descriptor >= 0 || errno != ENOENT) return descriptor;
  descriptor =
      retried([&] { return ::open(path.c_str(), flags | careful | O_CREAT | O_EXCL, 0600); });
  if (descriptor >= 0) static_cast<void>(::fchmod(descriptor, 0600));
  if (descriptor < 0 && errno == EEXIST)  // another process was faster
    descriptor = retried([&] { return ::open(path.c_str(), flags | careful); });
  return descriptor;
}

int append_to_file(const std::string& path, std::span<const std::byte> bytes, std::uint64_t* size) {
  Descriptor file(open_or_create(path, O_WRONLY | O_APPEND));
  if (file.get() < 0) return errno;
  struct stat before, after;
  if (::fstat(file.get(), &before) != 0) return errno;
  if (size != nullptr) *size = static_cast<std::uint64_t>(before.st_size);
  const QuietWrites quiet;
  const auto written = retried([&] { return ::write(file.get(), bytes.data(), bytes.size()); });
  if (written < 0) return errno;
  if (static_cast<std::size_t>(written) == bytes.size()) return 0;
  // An incomplete line would corrupt the next one, so it is removed unless another process has
  // already appended to it.
  if (::fstat(file.get(), &after) == 0 && after.st_size == before.st_size + written)
    static_cast<void>(::ftruncate(file.get(), before.st_size));
  return ENOSPC;
}

OpenDirectory::OpenDirectory(int at, const char* path) {
  const int descriptor = retried([&] {
    return ::openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  });
  if (descriptor >= 0) {
    stream_.reset(::fdopendir(descriptor));
    if (!stream_) ::close(descriptor);
  }
  if (!stream_) error_ = errno;
}

OpenDirectory::OpenDirectory(const std::string& path) : OpenDirectory(AT_FDCWD, path.c_str()) {}

OpenDirectory::OpenDirectory(const OpenDirectory& parent, const std::string& name)
    : OpenDirectory(::dirfd(parent.stream_.get()), name.c_str()) {}

std::vector<std::string> OpenDirectory::names() {
  std::vector<std::string> result;
  if (std::exchange(listed_, true)) ::rewinddir(stream_.get());
  while (const dirent* entry = ::readdir(stream_.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") result.emplace_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool OpenDirectory::status(const std::string& name, struct stat& status) const {
  return ::fstatat(::dirfd(stream_.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool OpenDirectory::remove(const std::string& name) {
  return ::unlinkat(::dirfd(stream_.get()), name.c_str(), 0) == 0;
}

bool OpenDirectory::remove_directory(const std::string& name) {
  return ::unlinkat(::dirfd(stream_.get()), name.c_str(), AT_REMOVEDIR) == 0;
}

void remove_abandoned(OpenDirectory& directory) {
  const std::time_t now = std::time(nullptr);
  for (const std::string& name : directory.names()) {
    struct stat status;
    if ((is_temporary_name(name) || is_lock_name(name)) && directory.status(name, status) &&
        S_ISREG(status.st_mode) && status.st_mtime < now - orphan_seconds)
      directory.remove(name);
  }
}

}  // namespace kiln::cache
