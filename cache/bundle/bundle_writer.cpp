#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "cache/bundle/bundle.hpp"
#include "cache/bundle/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/store/files.hpp"
#include "cache/store/layout.hpp"

namespace kiln::cache {

BundleWriter::BundleWriter(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + "." + temporary_name()),
      descriptor_(
          ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) failure_ = error_text(errno);
  write(encode_header());
}

BundleWriter::~BundleWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
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
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && failure_.empty())
    failure_ = error_text(errno);
  if (failure_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0)
    failure_ = error_text(errno);
  if (!failure_.empty()) ::unlink(temporary_.c_str());
  return failure_;
}

}  // namespace kiln::cache
