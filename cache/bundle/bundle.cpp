#include "cache/bundle/bundle.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cache/bundle/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/store/files.hpp"

namespace kiln::cache {
namespace {

constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;

Lookup missed(Miss miss, std::string detail) { return {std::nullopt, miss, std::move(detail)}; }

// The end of a sentence that says why the file is not trusted; "" if it is.
std::string distrust(const struct stat& status, uid_t trusted) {
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_mode & S_IWOTH) return "can be written by everybody";
  const uid_t owner = status.st_uid, user = ::geteuid();
  if (owner == user || owner == 0 || owner == trusted) return "";
  return "belongs to another user (uid " + std::to_string(owner) + "; expected " +
         std::to_string(user) + " or root)";
}

}  // namespace

struct Bundle::Page {
  std::vector<BundleRecord> records;
  bool sound = true;
};

// Opens and examines the file when something has to be read.
class Bundle::Reader {
 public:
  explicit Reader(const Bundle& bundle) : bundle_(bundle) {}

  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t size) {
    if (!file_) open();
    return why_.empty() ? file_->read(offset, size) : std::vector<std::byte>();
  }
  // The reason of a failed read: the end of a sentence.
  std::string why() const { return why_.empty() ? error_text(file_->error()) : why_; }

 private:
  void open() {
    file_ = std::make_unique<const FileReader>(bundle_.path_);
    struct stat status;
    if (file_->error() != 0 || !file_->status(status)) {
      why_ = "cannot be opened: " + error_text(file_->error());
    } else {
      why_ = distrust(status, bundle_.trusted_);
      if (why_.empty() && static_cast<std::uint64_t>(status.st_size) != bundle_.bytes())
        why_ = "was replaced by another file";
    }
  }

  const Bundle& bundle_;
  std::unique_ptr<const FileReader> file_;
  std::string why_;
};

Bundle::Bundle(std::string path, const BundleLayout& layout, uid_t trusted)
    : path_(std::move(path)),
      layout_(layout),
      trusted_(trusted),
      pages_(std::make_unique<std::atomic<const Page*>[]>(layout.pages)) {}

Bundle::~Bundle() {
  for (std::uint64_t i = 0; i < layout_.pages; ++i) delete pages_[i].load();
}

std::unique_ptr<const Bundle> Bundle::open(const std::string& path, std::string& why,
                                           uid_t trusted) {
  const FileReader file(path);
  struct stat status;
  if (file.error() != 0 || !file.status(status)) {
    why = "cannot be opened: " + error_text(file.error());
    return nullptr;
  }
  if (why = distrust(status, trusted); !why.empty()) return nullptr;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t begin = size - std::min(size, tail_bytes);
  const std::vector<std::byte> tail = file.read(begin, size - begin);
  BundleLayout layout;
  if (tail.size() < bundle_trailer_bytes ||
      !decode_trailer(std::span(tail).last(bundle_trailer_bytes), size, layout)) {
    why = "is no bundle, or not a complete one";
    return nullptr;
  }
  std::unique_ptr<const Bundle> bundle(new Bundle(path, layout, trusted));
  // Keep the pages that are entirely in the tail.
  const std::uint64_t before = begin - std::min(begin, layout.index_at);
  for (std::uint64_t i = (before + bundle_page_bytes - 1) / bundle_page_bytes; i < layout.pages;
       ++i)
    bundle->keep(i, std::span(tail).subspan(layout.index_at + i * bundle_page_bytes - begin,
                                            bundle_page_bytes));
  return bundle;
}

void Bundle::keep(std::uint64_t number, std::span<const std::byte> bytes) const {
  auto page = std::make_unique<Page>();
  page->sound = decode_page(bytes, number, page->records);
  for (const BundleRecord& record : page->records)
    page->sound = page->sound && record.bytes <= max_entry_bytes &&
                  record.bytes <= layout_.file_bytes &&
                  record.offset <= layout_.file_bytes - record.bytes;
  const Page* none = nullptr;
  if (pages_[number].compare_exchange_strong(none, page.get())) static_cast<void>(page.release());
}

const Bundle::Page* Bundle::page(std::uint64_t number, Reader& reader) const {
  if (const Page* known = pages_[number].load()) return known;
  const std::vector<std::byte> bytes =
      reader.read(layout_.index_at + number * bundle_page_bytes, bundle_page_bytes);
  if (bytes.size() != bundle_page_bytes) return nullptr;  // the next lookup tries again
  keep(number, bytes);
  return pages_[number].load();
}

Lookup Bundle::get(const Key& key, bool* other) const {
  Reader reader(*this);
  Lookup best = missed(Miss::absent, "");
  // Entries do not overlap, so together they have at most the bytes of the file.
  std::uint64_t unread = layout_.file_bytes;
  const std::uint64_t first = first_page(key.content_hash(), layout_.pages);
  for (std::uint64_t i = 0; i < layout_.pages; ++i) {
    const Page* const found = page((first + i) % layout_.pages, reader);
    if (!found) return missed(Miss::unreadable, path_ + " " + reader.why());
    if (!found->sound) return missed(Miss::corrupt, path_ + ": a page of the index is damaged");
    for (const BundleRecord& record : found->records) {
      if (record.content_hash != key.content_hash()) continue;
      if (!key.producer_hash().empty() && record.producer_hash != key.producer_hash()) {
        if (other) *other = true;
        continue;
      }
      if (record.bytes > unread) return best;
      unread -= record.bytes;
      const std::vector<std::byte> bytes = reader.read(record.offset, record.bytes);
      const Decoded decoded = decode(bytes);
      if (bytes.size() != record.bytes) {
        best = missed(Miss::unreadable, path_ + " " + reader.why());
      } else if (decoded.flaw) {
        best = missed(Miss::corrupt, path_ + ": an entry is damaged: " + decoded.flaw);
      } else if (const std::string differs = difference(key, decoded.view); !differs.empty()) {
        best = missed(Miss::collision, path_ + ": another kernel's, by its " + differs);
      } else {
        return {copy_sections(decoded.view), Miss::none, path_, std::string(decoded.view.producer)};
      }
    }
    if (found->records.size() < bundle_page_records) break;
  }
  return best;
}

std::vector<BundleRecord> Bundle::records(std::string& flaw) const {
  std::vector<BundleRecord> all;
  Reader reader(*this);
  std::uint64_t unclaimed = layout_.file_bytes;
  for (std::uint64_t i = 0; i < layout_.pages; ++i) {
    const Page* const found = page(i, reader);
    if (!found || !found->sound) {
      flaw = "page " + std::to_string(i) + " of the index is damaged";
      continue;
    }
    for (const BundleRecord& record : found->records) {
      if (record.bytes > unclaimed) {
        flaw = "the index has entries that overlap";
        break;
      }
      unclaimed -= record.bytes;
      all.push_back(record);
    }
  }
  std::sort(all.begin(), all.end(), [](const BundleRecord& a, const BundleRecord& b) {
    return std::pair(a.content_hash, a.producer_hash) < std::pair(b.content_hash, b.producer_hash);
  });
  if (flaw.empty() && all.size() != layout_.entries)
    flaw = "the index has " + std::to_string(all.size()) + " entries; expected " +
           std::to_string(layout_.entries);
  return all;
}

std::vector<std::byte> Bundle::entry(const BundleRecord& record) const {
  Reader reader(*this);
  std::vector<std::byte> bytes = reader.read(record.offset, record.bytes);
  if (bytes.size() != record.bytes) bytes.clear();
  return bytes;
}

std::string Bundle::provenance(std::string& flaw) const {
  Reader reader(*this);
  if (!is_bundle_header(reader.read(0, bundle_header_bytes))) flaw = "the header is damaged";
  const std::vector<std::byte> bytes = reader.read(layout_.provenance_at, layout_.provenance_bytes);
  if (hash128(bytes) != layout_.provenance_digest) {
    flaw = "the provenance is damaged";
    return "";
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::cache
