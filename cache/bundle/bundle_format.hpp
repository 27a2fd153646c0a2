// The bytes of a bundle's index and trailer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/bundle/bundle.hpp"

namespace kiln::cache {

inline constexpr std::size_t bundle_header_bytes = 64, bundle_trailer_bytes = 128,
                             bundle_page_bytes = 4096, bundle_record_bytes = 40,
                             bundle_page_records =
                                 (bundle_page_bytes - sizeof(Digest)) / bundle_record_bytes;

// Limits above what any bundle needs: 53 million kernels, and 256 MiB of provenance. A file that
// states more is not a bundle, whatever its size.
inline constexpr std::uint64_t most_bundle_pages = std::uint64_t{1} << 20,
                               most_provenance_bytes = std::uint64_t{256} << 20;

std::vector<std::byte> encode_header();
bool is_bundle_header(std::span<const std::byte> bytes);

std::vector<std::byte> encode_trailer(const BundleLayout& layout);
// Decodes the last bytes of a file of `file_bytes` bytes. False if they are no trailer, or the
// trailer of another file.
bool decode_trailer(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                    BundleLayout& layout);

// The number of pages for so many entries. Pages are half full, so that a page rarely overflows
// into the next one.
std::uint64_t pages_for(std::uint64_t entries);
// The page at which the search for a content hash (hex) begins. It continues while pages are full.
std::uint64_t first_page(const std::string& content_hash, std::uint64_t pages);

std::vector<std::byte> encode_index(std::span<const BundleRecord> records, std::uint64_t pages);
// Decodes a page. False if its checksum, which covers its number, is wrong.
bool decode_page(std::span<const std::byte> bytes, std::uint64_t number,
                 std::vector<BundleRecord>& records);

}  // namespace kiln::cache
