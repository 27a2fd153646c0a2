#include "cache/bundle/bundle_format.hpp"

#include <algorithm>
#include <charconv>

#include "cache/bundle/bytes.hpp"

namespace kiln::cache {
namespace {

constexpr std::string_view magic = "KILNBNDL", done = "KILNDONE";
constexpr std::uint64_t bundle_version = 1;

std::uint64_t number_of(std::string_view hex) {
  std::uint64_t number = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
  return number;
}

std::string hex_of(std::uint64_t number) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, number >>= 4)
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[number & 15];
  return text;
}

Digest page_digest(std::span<const std::byte> records, std::uint64_t number) {
  ByteWriter bytes;
  bytes.raw(records);
  bytes.integer(number);
  return hash128(bytes.bytes());
}

void pad(ByteWriter& bytes, std::size_t size) {
  const std::vector<std::byte> zeros(size - bytes.bytes().size());
  bytes.raw(zeros);
}

}  // namespace

std::vector<std::byte> encode_header() {
  ByteWriter header;
  header.raw(std::as_bytes(std::span(magic)));
  header.integer(bundle_version);
  pad(header, bundle_header_bytes);
  return header.take();
}

bool is_bundle_header(std::span<const std::byte> bytes) {
  return std::ranges::equal(bytes, encode_header());
}

std::vector<std::byte> encode_trailer(const BundleLayout& layout) {
  ByteWriter trailer;
  trailer.integer(bundle_version);
  for (const std::uint64_t number : {layout.file_bytes, layout.entries, layout.index_at,
                                     layout.pages, layout.provenance_at, layout.provenance_bytes})
    trailer.integer(number);
  trailer.raw(layout.provenance_digest);
  pad(trailer, bundle_trailer_bytes - sizeof(Digest) - done.size());
  trailer.raw(hash128(trailer.bytes()));
  trailer.raw(std::as_bytes(std::span(done)));
  return trailer.take();
}

bool decode_trailer(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                    BundleLayout& layout) {
  if (bytes.size() != bundle_trailer_bytes) return false;
  if (as_text(bytes.last(done.size())) != done) return false;
  const auto hashed = bytes.first(bundle_trailer_bytes - sizeof(Digest) - done.size());
  if (!std::ranges::equal(hash128(hashed), bytes.subspan(hashed.size(), sizeof(Digest))))
    return false;
  ByteReader reader(hashed);
  if (reader.integer() != bundle_version) return false;
  for (std::uint64_t* number : {&layout.file_bytes, &layout.entries, &layout.index_at,
                                &layout.pages, &layout.provenance_at, &layout.provenance_bytes})
    *number = reader.integer();
  std::ranges::copy(reader.raw(sizeof(Digest)), layout.provenance_digest.begin());
  // Values may be wrong although the checksum is right, so offsets are checked against the file.
  const std::uint64_t most = file_bytes;
  return layout.file_bytes == file_bytes && layout.pages > 0 && layout.pages <= most_bundle_pages &&
         layout.provenance_bytes <= most_provenance_bytes &&
         layout.pages <= most / bundle_page_bytes && layout.index_at <= most &&
         layout.pages * bundle_page_bytes <= most - layout.index_at &&
         layout.provenance_at <= most && layout.provenance_bytes <= most - layout.provenance_at &&
         layout.entries <= layout.pages * bundle_page_records;
}

std::uint64_t pages_for(std::uint64_t entries) {
  return std::max<std::uint64_t>(1, (2 * entries + bundle_page_records - 1) / bundle_page_records);
}

std::uint64_t first_page(const std::string& content_hash, std::uint64_t pages) {
  return (number_of(std::string_view(content_hash).substr(0, 8)) * pages) >> 32;
}

std::vector<std::byte> encode_index(std::span<const BundleRecord> records, std::uint64_t pages) {
  std::vector<std::vector<const BundleRecord*>> filled(pages);
  for (const BundleRecord& record : records) {
    std::uint64_t at = first_page(record.content_hash, pages);
    while (filled[at].size() == bundle_page_records) at = (at + 1) % pages;
    filled[at].push_back(&record);
  }
  ByteWriter index;
  index.reserve(pages * bundle_page_bytes);
  for (std::uint64_t number = 0; number < pages; ++number) {
    ByteWriter page;
    for (const BundleRecord* record : filled[number]) {
      page.integer(number_of(std::string_view(record->content_hash).substr(0, 16)));
      page.integer(number_of(std::string_view(record->content_hash).substr(16)));
      page.integer(number_of(record->producer_hash));
      page.integer(record->offset);
      page.integer(record->bytes);
    }
    pad(page, bundle_page_bytes - sizeof(Digest));
    page.raw(page_digest(page.bytes(), number));
    index.raw(page.bytes());
  }
  return index.take();
}

bool decode_page(std::span<const std::byte> bytes, std::uint64_t number,
                 std::vector<BundleRecord>& records) {
  if (bytes.size() != bundle_page_bytes) return false;
  const auto hashed = bytes.first(bundle_page_bytes - sizeof(Digest));
  if (!std::ranges::equal(page_digest(hashed, number), bytes.last(sizeof(Digest)))) return false;
  ByteReader reader(hashed);
  for (std::size_t i = 0; i < bundle_page_records; ++i) {
    BundleRecord record;
    record.content_hash = hex_of(reader.integer());
    record.content_hash += hex_of(reader.integer());
    record.producer_hash = hex_of(reader.integer());
    record.offset = reader.integer();
    record.bytes = reader.integer();
    if (record.bytes == 0) break;
    records.push_back(std::move(record));
  }
  return true;
}

}  // namespace kiln::cache
