#include "cache/entry_format.hpp"

#include <algorithm>

#include "cache/bundle/bytes.hpp"
#include "cache/hash.hpp"

namespace kiln::cache {
namespace {

constexpr std::string_view magic = "KILNKRNL";
constexpr std::size_t header_bytes = 24;  // magic, version, total size
constexpr std::size_t digest_bytes = sizeof(Digest);

std::uint64_t encoded_size(const Key& key, const Entry& entry) {
  std::uint64_t size = header_bytes + 8 + 8 + key.producer().size() + 8 + digest_bytes;
  for (const Field& field : key.content()) size += 16 + field.name.size() + field.value.size();
  for (const Section& section : entry.sections)
    size += 16 + section.name.size() + section.bytes.size();
  return size;
}

}  // namespace

std::vector<std::byte> encode(const Key& key, const Entry& entry) {
  const std::uint64_t size = encoded_size(key, entry);
  ByteWriter file;
  file.reserve(size);
  file.raw(std::as_bytes(std::span(magic)));
  file.integer(format_version);
  file.integer(size);
  file.integer(key.content().size());
  for (const Field& field : key.content()) {
    file.string(field.name);
    file.string(field.value);
  }
  file.string(key.producer());
  file.integer(entry.sections.size());
  for (const Section& section : entry.sections) {
    file.string(section.name);
    file.string(section.bytes);
  }
  file.raw(hash128(file.bytes()));
  return file.take();
}

std::uint64_t announced_size(std::span<const std::byte> beginning) {
  if (beginning.size() < header_bytes) return undecided;
  ByteReader header(beginning);
  if (as_text(header.raw(magic.size())) != magic) return 0;
  if (header.integer() != format_version) return 0;
  const std::uint64_t size = header.integer();
  return size >= header_bytes + digest_bytes && size <= max_entry_bytes ? size : 0;
}

Decoded decode(std::span<const std::byte> file) {
  const std::uint64_t size = announced_size(file);
  if (size == 0) return {{}, "it is not an entry of this format"};
  if (size != file.size()) return {{}, "it is not of the size that it announces"};
  const auto hashed = file.first(file.size() - digest_bytes);
  if (!std::ranges::equal(hash128(hashed), file.last(digest_bytes)))
    return {{}, "its checksum is wrong"};

  // No memory is allocated according to a count in the file. Each element takes at least the bytes
  // of its two lengths, and the reader fails at the end of the file.
  EntryView view;
  ByteReader body(hashed.subspan(header_bytes));
  for (std::uint64_t n = body.integer(); n != 0 && !body.failed(); --n) {
    const auto name = as_text(body.string());
    view.content.push_back({name, as_text(body.string())});
  }
  view.producer = as_text(body.string());
  for (std::uint64_t n = body.integer(); n != 0 && !body.failed(); --n) {
    const auto name = as_text(body.string());
    view.sections.push_back({name, body.string()});
  }
  if (!body.complete()) return {{}, "its lengths do not add up"};
  return {std::move(view), nullptr};
}

std::string difference(const Key& key, const EntryView& entry) {
  const auto& content = key.content();
  for (std::size_t i = 0; i < std::min(content.size(), entry.content.size()); ++i) {
    if (content[i].name != entry.content[i].name || content[i].value != entry.content[i].value)
      return "field '" + content[i].name + "'";
  }
  if (content.size() != entry.content.size()) return "number of fields";
  if (!key.producer().empty() && key.producer() != entry.producer) return "producer";
  return "";
}

Entry copy_sections(const EntryView& view) {
  Entry entry;
  entry.sections.reserve(view.sections.size());
  for (const auto& section : view.sections)
    entry.sections.push_back(
        {std::string(section.name), {section.bytes.begin(), section.bytes.end()}});
  return entry;
}

std::vector<Field> copy_content(const EntryView& view) {
  std::vector<Field> content;
  content.reserve(view.content.size());
  for (const auto& field : view.content)
    content.push_back({std::string(field.name), std::string(field.value)});
  return content;
}

}  // namespace kiln::cache
