#include "device/host/shared_object.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/config.hpp"
#include "core/error.hpp"

namespace kiln::host {
namespace {

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

void* open_library(const std::string& path, std::string& why) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) why = dlerror();
  return handle;
}

}  // namespace

SharedObject::SharedObject(std::span<const std::byte> image) {
  std::string why_memory, why_file;
  if (open_from_memory(image, why_memory) || open_from_file(image, why_file)) return;
  fail(KILN_STATUS_EXECUTION_FAILED, "the host kernel cannot be loaded: from memory: ", why_memory,
       "; from a temporary file: ", why_file);
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
  if (memory_ >= 0) close(memory_);
}

bool SharedObject::open_from_memory(std::span<const std::byte> image, std::string& why) {
  memory_ = memfd_create("kiln-host-kernel", MFD_CLOEXEC);
  if (memory_ < 0 || !write_all(memory_, image)) {
    why = std::strerror(errno);
  } else {
    // With the process id, and not /proc/self, a debugger finds the file under this name too.
    handle_ = open_library(cat("/proc/", getpid(), "/fd/", memory_), why);
  }
  if (handle_) return true;
  if (memory_ >= 0) close(memory_);
  memory_ = -1;
  return false;
}

bool SharedObject::open_from_file(std::span<const std::byte> image, std::string& why) {
  std::string path = cat(temporary_directory(), "/kiln-host-kernel-XXXXXX");
  const int file = mkstemp(path.data());  // readable by this user alone
  if (file < 0) {
    why = cat(path, ": ", std::strerror(errno));
    return false;
  }
  if (write_all(file, image)) {
    handle_ = open_library(path, why);
  } else {
    why = cat(path, ": ", std::strerror(errno));
  }
  close(file);
  unlink(path.c_str());
  return handle_ != nullptr;
}

const void* SharedObject::symbol(const std::string& name) const {
  return dlsym(handle_, name.c_str());
}

}  // namespace kiln::host
