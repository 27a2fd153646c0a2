#include "cache/bundle.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/files.hpp"

namespace kiln::cache {
namespace {

constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;

Lookup missed(Miss miss, std::string detail) { return {std::nullopt, miss, std::move(detail)}; }

}  // namespace

struct Bundle::Page {
  std::vector<BundleRecord> records;
  bool sound = true;
};

// The file, opened when something must be read.
class Bundle::Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t size) {
    if (!file_) file_ = std::make_unique<const FileReader>(path_);
    return file_->read(offset, size);
  }
  int error() const { return file_ ? file_->error() : 0; }

 private:
  const std::string& path_;
  std::unique_ptr<const FileReader> file_;
};

Bundle::Bundle(std::string path, const BundleLayout& layout)
    : path_(std::move(path)),
      layout_(layout),
      pages_(std::make_unique<std::atomic<const Page*>[]>(layout.pages)) {}

Bundle::~Bundle() {
  for (std::uint64_t i = 0; i < layout_.pages; ++i) delete pages_[i].load();
}

std::unique_ptr<const Bundle> Bundle::open(const std::string& path, std::string& why) {
  const FileReader file(path);
  struct stat status;
  if (file.error() != 0 || !file.status(status)) {
    why = "cannot be opened: " + error_text(file.error());
    return nullptr;
  }
  if (!S_ISREG(status.st_mode)) {
    why = "is not a regular file";
    return nullptr;
  }
  if (status.st_mode & S_IWOTH) {
    why = "can be written by everybody";
    return nullptr;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t begin = size - std::min(size, tail_bytes);
  const std::vector<std::byte> tail = file.read(begin, size - begin);
  BundleLayout layout;
  if (tail.size() < bundle_trailer_bytes ||
      !decode_trailer(std::span(tail).last(bundle_trailer_bytes), size, layout)) {
    why = "is no bundle, or not a complete one";
    return nullptr;
  }
  std::unique_ptr<const Bundle> bundle(new Bundle(path, layout));
  // The pages that lie whole in the tail.
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
  const Page* none = nullptr;
  if (pages_[number].compare_exchange_strong(none, page.get())) static_cast<void>(page.release());
}

const Bundle::Page* Bundle::page(std::uint64_t number, Reader& reader) const {
  if (const Page* known = pages_[number].load()) return known;
  const std::vector<std::byte> bytes =
      reader.read(layout_.index_at + number * bundle_page_bytes, bundle_page_bytes);
  if (bytes.size() != bundle_page_bytes) return nullptr;  // try again another time
  keep(number, bytes);
  return pages_[number].load();
}

Lookup Bundle::get(const Key& key, bool* other) const {
  try {
    Reader reader(path_);
    Lookup best = missed(Miss::absent, "");
    const std::uint64_t first = first_page(key.content_hash(), layout_.pages);
    for (std::uint64_t i = 0; i < layout_.pages; ++i) {
      const Page* const found = page((first + i) % layout_.pages, reader);
      if (!found) return missed(Miss::unreadable, path_ + ": " + error_text(reader.error()));
      if (!found->sound) return missed(Miss::corrupt, path_ + ": a page of the index is damaged");
      for (const BundleRecord& record : found->records) {
        if (record.content_hash != key.content_hash()) continue;
        if (!key.producer_hash().empty() && record.producer_hash != key.producer_hash()) {
          if (other) *other = true;
          continue;
        }
        const std::vector<std::byte> bytes = reader.read(record.offset, record.bytes);
        const Decoded decoded = decode(bytes);
        if (bytes.size() != record.bytes) {
          best = missed(Miss::unreadable, path_ + ": " + error_text(reader.error()));
        } else if (decoded.flaw) {
          best = missed(Miss::corrupt, path_ + ": an entry that is " + decoded.flaw);
        } else if (const std::string differs = difference(key, decoded.view); !differs.empty()) {
          best = missed(Miss::collision, path_ + ": another kernel's, by its " + differs);
        } else {
          return {copy_sections(decoded.view), Miss::none, path_,
                  std::string(decoded.view.producer)};
        }
      }
      if (found->records.size() < bundle_page_records) break;
    }
    return best;
  } catch (const std::exception&) {
    return missed(Miss::unreadable, "out of memory");
  }
}

std::vector<BundleRecord> Bundle::records(std::string& flaw) const {
  std::vector<BundleRecord> all;
  Reader reader(path_);
  for (std::uint64_t i = 0; i < layout_.pages; ++i) {
    const Page* const found = page(i, reader);
    if (!found || !found->sound) {
      flaw = "page " + std::to_string(i) + " of the index is damaged";
      continue;
    }
    all.insert(all.end(), found->records.begin(), found->records.end());
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
  Reader reader(path_);
  std::vector<std::byte> bytes = reader.read(record.offset, record.bytes);
  if (bytes.size() != record.bytes) bytes.clear();
  return bytes;
}

std::string Bundle::provenance(std::string& flaw) const {
  Reader reader(path_);
  if (!is_bundle_header(reader.read(0, bundle_header_bytes))) flaw = "the header is damaged";
  const std::vector<std::byte> bytes = reader.read(layout_.provenance_at, layout_.provenance_bytes);
  if (hash128(bytes) != layout_.provenance_digest) {
    flaw = "the provenance is damaged";
    return "";
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::cache
