// A library to preload. It makes the n-th system call on a folder fail, transfer fewer bytes than
// requested, or end the process. It counts calls of the C library with a path in KILN_FAULT_FOLDER,
// and calls with descriptors that these opened.
//
//   KILN_FAULT_FOLDER   the folder
//   KILN_FAULT_LOG      a file that gets the name of each counted call as a line
//   KILN_FAULT_AT       the number of the call, from 0
//   KILN_FAULT_ERROR    the errno value that it fails with; or
//   KILN_FAULT_BYTES    the most bytes that it transfers, if it is a read or a write; or
//   KILN_FAULT_KILL     1: SIGKILL instead of the call
//   KILN_FAULT_ONWARDS  1: this call and all later ones
//   KILN_FAULT_CLOCK    seconds that are added to the clock
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

int number(const char* variable, int otherwise) {
  const char* const value = std::getenv(variable);
  return value ? std::atoi(value) : otherwise;
}

std::atomic<int> calls{0};
std::atomic<bool> watched[1024];  // descriptors
std::atomic<DIR*> watched_directories[64];

bool ours(const char* path) {
  const char* const folder = std::getenv("KILN_FAULT_FOLDER");
  return folder && path && std::string_view(path).starts_with(folder);
}
bool ours(int descriptor) { return descriptor >= 0 && descriptor < 1024 && watched[descriptor]; }
bool ours(DIR* stream) {
  return std::find(std::begin(watched_directories), std::end(watched_directories), stream) !=
         std::end(watched_directories);
}
bool ours(int at, const char* path) {
  return path && *path == '/' ? ours(path) : at == AT_FDCWD ? false : ours(at);
}

void note(const char* call) {
  const char* const path = std::getenv("KILN_FAULT_LOG");
  if (!path) return;
  const long file =
      syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char line[64];
  const std::size_t size = std::min(std::strlen(call), sizeof line - 1);
  std::memcpy(line, call, size);
  line[size] = '\n';
  syscall(SYS_write, file, line, size + 1);
  syscall(SYS_close, file);
}

// Counts a call. Returns whether it has to fail, and sets errno then.
bool fails(const char* call, std::size_t* bytes = nullptr) {
  const int before = errno, at = number("KILN_FAULT_AT", -1), index = calls++;
  note(call);
  errno = before;
  if (at < 0 || index < at || (index > at && number("KILN_FAULT_ONWARDS", 0) == 0)) return false;
  if (number("KILN_FAULT_KILL", 0)) raise(SIGKILL);
  if (const int most = number("KILN_FAULT_BYTES", 0); most > 0 && bytes)
    *bytes = std::min(*bytes, static_cast<std::size_t>(most));
  const int error = number("KILN_FAULT_ERROR", 0);
  if (error == 0) return false;
  errno = error;
  return true;
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define NEXT(function) next(&::function, #function)

int watch(int descriptor) {
  if (descriptor >= 0 && descriptor < 1024) watched[descriptor] = true;
  return descriptor;
}

mode_t mode_of(int flags, std::va_list rest) {
  return flags & (O_CREAT | __O_TMPFILE) ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if (!ours(path)) return NEXT(open)(path, flags, mode);
  return fails("open") ? -1 : watch(NEXT(open)(path, flags, mode));
}

int openat(int at, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if (!ours(at, path) && !ours(path)) return NEXT(openat)(at, path, flags, mode);
  return fails("openat") ? -1 : watch(NEXT(openat)(at, path, flags, mode));
}

// The descriptor is closed even if close fails.
int close(int descriptor) {
  const bool mine = ours(descriptor);
  if (mine) watched[descriptor] = false;
  const bool failed = mine && fails("close");
  const int error = errno, result = NEXT(close)(descriptor);
  if (failed) errno = error;
  return failed ? -1 : result;
}

ssize_t read(int descriptor, void* bytes, size_t size) {
  if (ours(descriptor) && fails("read", &size)) return -1;
  return NEXT(read)(descriptor, bytes, size);
}
ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (ours(descriptor) && fails("write", &size)) return -1;
  return NEXT(write)(descriptor, bytes, size);
}
ssize_t pread(int descriptor, void* bytes, size_t size, off_t at) {
  if (ours(descriptor) && fails("pread", &size)) return -1;
  return NEXT(pread)(descriptor, bytes, size, at);
}
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t at) {
  if (ours(descriptor) && fails("pwrite", &size)) return -1;
  return NEXT(pwrite)(descriptor, bytes, size, at);
}

DIR* fdopendir(int descriptor) {
  if (!ours(descriptor)) return NEXT(fdopendir)(descriptor);
  if (fails("fdopendir")) return nullptr;
  DIR* const stream = NEXT(fdopendir)(descriptor);
  DIR* none = nullptr;
  for (auto& slot : watched_directories)
    if (stream && slot.compare_exchange_strong(none = nullptr, stream)) break;
  return stream;
}
int closedir(DIR* stream) {
  for (auto& slot : watched_directories)
    if (slot == stream) {
      watched[dirfd(stream)] = false;
      slot = nullptr;
    }
  return NEXT(closedir)(stream);
}
struct dirent* readdir(DIR* stream) {
  return ours(stream) && fails("readdir") ? nullptr : NEXT(readdir)(stream);
}

#define ON_PATH(name, parameters, path, arguments) \
  int name parameters { return ours(path) && fails(#name) ? -1 : NEXT(name) arguments; }
#define ON_PATH_AT(name, parameters, at, path, arguments)                              \
  int name parameters {                                                                \
    return (ours(at, path) || ours(path)) && fails(#name) ? -1 : NEXT(name) arguments; \
  }
#define ON_DESCRIPTOR(name, parameters, arguments) \
  int name parameters { return ours(descriptor) && fails(#name) ? -1 : NEXT(name) arguments; }

ON_PATH(mkdir, (const char* path, mode_t mode), path, (path, mode))
ON_PATH(rmdir, (const char* path), path, (path))
ON_PATH(chmod, (const char* path, mode_t mode), path, (path, mode))
ON_PATH(unlink, (const char* path), path, (path))
ON_PATH(rename, (const char* path, const char* to), path, (path, to))
ON_PATH(link, (const char* path, const char* to), path, (path, to))
ON_PATH(access, (const char* path, int mode), path, (path, mode))
ON_PATH(stat, (const char* path, struct stat* status), path, (path, status))
ON_PATH(lstat, (const char* path, struct stat* status), path, (path, status))
ON_PATH_AT(fstatat, (int at, const char* path, struct stat* status, int flags), at, path,
           (at, path, status, flags))
ON_PATH_AT(unlinkat, (int at, const char* path, int flags), at, path, (at, path, flags))
ON_PATH_AT(utimensat, (int at, const char* path, const struct timespec times[2], int flags), at,
           path, (at, path, times, flags))
ON_DESCRIPTOR(fstat, (int descriptor, struct stat* status), (descriptor, status))
ON_DESCRIPTOR(fchmod, (int descriptor, mode_t mode), (descriptor, mode))
ON_DESCRIPTOR(fsync, (int descriptor), (descriptor))
ON_DESCRIPTOR(ftruncate, (int descriptor, off_t size), (descriptor, size))
ON_DESCRIPTOR(flock, (int descriptor, int operation), (descriptor, operation))
ON_DESCRIPTOR(futimens, (int descriptor, const struct timespec times[2]), (descriptor, times))

time_t time(time_t* out) {
  const time_t now = NEXT(time)(nullptr) + number("KILN_FAULT_CLOCK", 0);
  if (out) *out = now;
  return now;
}
int clock_gettime(clockid_t clock, struct timespec* out) {
  const int result = NEXT(clock_gettime)(clock, out);
  if (clock == CLOCK_REALTIME) out->tv_sec += number("KILN_FAULT_CLOCK", 0);
  return result;
}

}  // extern "C"
