#include "device/host/shared_object.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "cache/store/files.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/file_descriptor.hpp"
#include "core/process/loader.hpp"

namespace kiln::host {
namespace {

// Whether the file has to stay readable: sanitizers' reports and debuggers read the names and lines
// of the kernel from it.
bool is_read_again() {
#ifdef KILN_SANITIZE
  return true;
#else
  return config().line_info;
#endif
}

// A path of the descriptor that no other library had. glibc takes a library with a known path for
// one that is already loaded, and descriptor numbers are reused. So each path spells its folder
// differently: "/." and "/" are the binary digits of a counter. (It has the process's number, not
// "self", so that a debugger finds the file under this path too.)
std::string unique_path(int descriptor) {
  static std::atomic<std::uint64_t> count{0};
  std::string path = cat("/proc/", getpid(), "/fd");
  for (std::uint64_t rest = ++count; rest != 0; rest >>= 1) path += (rest & 1) != 0 ? "/." : "/";
  return cat(path, "/", descriptor);
}

}  // namespace

SharedObject::SharedObject(std::span<const std::byte> image) {
  try {
    std::string why_memory, why_file;
    if (open_from_memory(image, why_memory) || open_from_file(image, why_file)) return;
    fail(KILN_STATUS_EXECUTION_FAILED,
         "the host kernel cannot be loaded: from memory: ", why_memory,
         "; from a temporary file: ", why_file);
  } catch (...) {
    close_all();
    throw;
  }
}

SharedObject::~SharedObject() { close_all(); }

void SharedObject::close_all() {
  if (handle_) close_library(handle_);
  if (memory_ >= 0) close(memory_);
}

bool SharedObject::open_from_memory(std::span<const std::byte> image, std::string& why) {
  memory_ = memfd_create("kiln-host-kernel", MFD_CLOEXEC);
  if (const int error = memory_ < 0 ? errno : cache::write_all(memory_, image)) {
    why = std::strerror(error);
  } else {
    handle_ = open_library(unique_path(memory_), why);
  }
  if (handle_ && is_read_again()) return true;
  if (memory_ >= 0) close(memory_);
  memory_ = -1;
  return handle_ != nullptr;
}

bool SharedObject::open_from_file(std::span<const std::byte> image, std::string& why) {
  std::string path = cat(temporary_directory(), "/kiln-host-kernel-XXXXXX");
  const FileDescriptor file(mkstemp(path.data()));  // readable by this user alone
  if (!file) {
    why = cat(path, ": ", std::strerror(errno));
    return false;
  }
  const struct Name {
    const std::string& path;
    ~Name() { unlink(path.c_str()); }
  } name{path};
  if (const int error = cache::write_all(file.get(), image))
    why = cat(path, ": ", std::strerror(error));
  else
    handle_ = open_library(path, why);
  return handle_ != nullptr;
}

const void* SharedObject::symbol(const std::string& name) const {
  return find_symbol(handle_, name.c_str());
}

}  // namespace kiln::host
