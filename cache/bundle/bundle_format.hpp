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

// More than any bundle needs: 53 million kernels, 256 MiB about them. A file that states more is no
// bundle, whatever its size.
inline constexpr std::uint64_t most_bundle_pages = std::uint64_t{1} << 20,
                               most_provenance_bytes = std::uint64_t{256} << 20;

std::vector<std::byte> encode_header();
bool is_bundle_header(std::span<const std::byte> bytes);

std::vector<std::byte> encode_trailer(const BundleLayout& layout);
// The last bytes of a file of `file_bytes`. False: not a trailer, or not of this file.
bool decode_trailer(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                    BundleLayout& layout);

// Half full, so that a page hardly ever overflows into the next one.
std::uint64_t pages_for(std::uint64_t entries);
// The page where looking for a content hash (hex) begins; it goes on while pages are full.
std::uint64_t first_page(const std::string& content_hash, std::uint64_t pages);

std::vector<std::byte> encode_index(std::span<const BundleRecord> records, std::uint64_t pages);
// False: a page whose checksum, which covers its number, is wrong.
bool decode_page(std::span<const std::byte> bytes, std::uint64_t number,
                 std::vector<BundleRecord>& records);

}  // namespace kiln::cache
