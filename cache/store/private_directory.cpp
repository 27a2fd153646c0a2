#include "cache/store/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cache/store/files.hpp"

namespace kiln::cache {

namespace {

// What is wrong with the directory that contains `path`, a clause; "" if nothing is.
std::string flaw_of_parent(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const std::string parent =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct stat status;
  if (::stat(parent.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return "";
  if (!(status.st_mode & S_IWOTH) || (status.st_mode & S_ISVTX)) return "";
  return "lies in " + parent + ", where every user may rename it (no sticky bit)";
}

}  // namespace

std::string other_writers(const struct stat& status, uid_t owner) {
  if (status.st_uid != owner)
    return "belongs to another user (uid " + std::to_string(status.st_uid) + ", not " +
           std::to_string(owner) + ")";
  return status.st_mode & (S_IWGRP | S_IWOTH) ? "can be written by other users" : "";
}

Standing examine(const std::string& path) {
  if (std::string flaw = flaw_of_parent(path); !flaw.empty())
    return {Standing::refused, std::move(flaw)};
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
  if (std::string others = other_writers(status, ::geteuid()); !others.empty())
    return refused(std::move(others));
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
