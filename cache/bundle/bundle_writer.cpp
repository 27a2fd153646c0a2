#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "cache/bundle/bundle.hpp"
#include "cache/bundle/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/store/files.hpp"
#include "cache/store/layout.hpp"

namespace kiln::cache {
namespace {

std::string path_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// A file without a name, which goes when this process ends, however it ends. -1 where the file
// system makes no such files, or where there is no /proc to name them by.
int open_nameless(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
  if (descriptor < 0 || ::access(path_of(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

int open_named(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

// Gives a nameless file its name. Returns 0 or an error number.
int give_name(int descriptor, const std::string& path) {
  const std::string file = path_of(descriptor);
  const int result = ::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
  return result == 0 ? 0 : errno;
}

}  // namespace

BundleWriter::BundleWriter(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + "." + temporary_name()),
      descriptor_(open_nameless(path_)),
      named_(descriptor_ < 0) {
  if (named_) descriptor_ = open_named(temporary_);
  if (descriptor_ < 0) failure_ = error_text(errno);
  write(encode_header());
}

BundleWriter::~BundleWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (named_) ::unlink(temporary_.c_str());
}

void BundleWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  if (!failure_.empty()) return;
  if (const int error = write_all(descriptor_, bytes)) failure_ = error_text(error);
}

bool BundleWriter::add(std::span<const std::byte> entry) {
  const Decoded decoded = decode(entry);
  if (decoded.flaw) return false;
  const Key key(copy_content(decoded.view), std::string(decoded.view.producer));
  if (!known_.insert(key.text()).second) return true;
  records_.push_back({key.content_hash(), key.producer_hash(), written_, entry.size()});
  write(entry);
  return failure_.empty();
}

std::string BundleWriter::finish(std::string_view provenance) {
  BundleLayout layout;
  layout.entries = records_.size();
  layout.provenance_at = written_;
  layout.provenance_bytes = provenance.size();
  layout.provenance_digest = hash128(std::as_bytes(std::span(provenance)));
  write(std::as_bytes(std::span(provenance)));
  layout.pages = pages_for(layout.entries);
  if (failure_.empty() &&
      (layout.pages > most_bundle_pages || provenance.size() > most_provenance_bytes))
    failure_ = "more kernels, or more about them, than a bundle may hold";
  layout.index_at = written_;
  write(encode_index(records_, layout.pages));
  layout.file_bytes = written_ + bundle_trailer_bytes;
  write(encode_trailer(layout));
  // Unlike an entry of the cache, a bundle is copied to other machines, so it is synced to disk.
  if (failure_.empty() && ::fsync(descriptor_) != 0) failure_ = error_text(errno);
  if (failure_.empty() && !named_) {
    if (const int error = give_name(descriptor_, temporary_)) failure_ = error_text(error);
    named_ = failure_.empty();
  }
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && failure_.empty())
    failure_ = error_text(errno);
  if (failure_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0)
    failure_ = error_text(errno);
  if (!failure_.empty() && named_) ::unlink(temporary_.c_str());
  return failure_;
}

}  // namespace kiln::cache
