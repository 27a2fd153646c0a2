#include "cache/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cache/files.hpp"

namespace kiln::cache {

Standing examine(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {Standing::absent, ""};
    return {Standing::refused, "cannot be examined: " + error_text(errno)};
  }
  const auto refused = [](std::string reason) {
    return Standing{Standing::refused, std::move(reason)};
  };
  if (S_ISLNK(status.st_mode)) return refused("is a symbolic link");
  if (!S_ISDIR(status.st_mode)) return refused("is not a directory");
  if (status.st_uid != ::geteuid())
    return refused("belongs to another user (uid " + std::to_string(status.st_uid) + ", not " +
                   std::to_string(::geteuid()) + ")");
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return refused("can be written by other users");
  return {Standing::sound, ""};
}

int make_private(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return 0;
    const auto slash = path.find_last_of('/');
    if (errno != ENOENT || slash == std::string::npos || slash == 0) return errno;
    if (const int error = make_private(path.substr(0, slash))) return error;
    if (::mkdir(path.c_str(), 0700) != 0) return errno == EEXIST ? 0 : errno;
  }
  // The umask can only have taken bits away from the owner.
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
      (status.st_mode & 0777) != 0700 && ::chmod(path.c_str(), 0700) != 0)
    return errno;
  return 0;
}

std::string settled_path(std::string path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error).string();
  if (error) return "";
  while (path.size() > 1 && (path.ends_with('/') || path.ends_with("/.")))
    path.resize(path.find_last_of('/'));
  return path.empty() ? "/" : path;
}

}  // namespace kiln::cache
