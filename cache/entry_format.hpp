// The bytes of an entry's file. All integers are 64-bit little-endian, all strings length-prefixed:
//
//   magic "KILNKRNL"   version   total size of the file
//   number of content fields, then name and value of each
//   producer
//   number of sections, then name and bytes of each
//   XXH3-128 of everything before it
//
// The file is self-contained: it has the full key, so hits are verified by comparison, and the file
// can be copied and listed without an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.hpp"
#include "cache/store/disk_store.hpp"

namespace kiln::cache {

inline constexpr std::uint64_t format_version = 1;  // a new one also gets a new directory, "v2"
inline constexpr std::uint64_t max_entry_bytes = std::uint64_t{64} << 20;

std::vector<std::byte> encode(const Key& key, const Entry& entry);

// A view of an entry in the bytes of its file.
struct EntryView {
  struct FieldView {
    std::string_view name, value;
  };
  struct SectionView {
    std::string_view name;
    std::span<const std::byte> bytes;
  };
  std::vector<FieldView> content;
  std::string_view producer;
  std::vector<SectionView> sections;
};

struct Decoded {
  EntryView view;
  const char* flaw = nullptr;  // null if the entry is sound; `view` is then complete
};
Decoded decode(std::span<const std::byte> file);

// The part of the key that is different in the entry: "field 'options'", "producer"; "" if the
// entry is the key's. A key of any producer matches every producer.
std::string difference(const Key& key, const EntryView& entry);

Entry copy_sections(const EntryView& view);
std::vector<Field> copy_content(const EntryView& view);

// The file's size according to its first bytes: 0 if they are not the beginning of an entry that
// `decode` could accept, `undecided` if they are too few to tell.
inline constexpr std::uint64_t undecided = ~std::uint64_t{0};
std::uint64_t announced_size(std::span<const std::byte> beginning);

}  // namespace kiln::cache
