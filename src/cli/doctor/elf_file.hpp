// Reads programs, shared libraries and object files of Linux (ELF). Files may be damaged or
// hostile. Sections are read one at a time, for a deep-learning framework's library has more than a
// gigabyte.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/files.hpp"

namespace kiln::cli {

class ElfFile {
 public:
  // Throws UsageError, with what the file is instead, unless it is a 64-bit little-endian ELF file
  // whose section headers lie within it.
  explicit ElfFile(const std::string& path);

  bool is_object() const { return header_.e_type == ET_REL; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string_view name_of(const Elf64_Shdr& section) const;

  // The section's bytes. Throws UsageError where the file does not have them, or where sections
  // overlap so much that reading all of them would take many times the file.
  std::vector<std::byte> read(const Elf64_Shdr& section);

  // The string table that holds the names of a symbol table or of a dynamic section.
  std::vector<std::byte> read_strings_of(const Elf64_Shdr& section);

  // The section's bytes in pieces of about a mebibyte, each after the last `overlap` bytes of the
  // one before.
  void read_pieces(const Elf64_Shdr& section, std::size_t overlap,
                   const std::function<void(std::span<const std::byte>)>& visit);

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t size);

  std::string path_;
  cache::FileReader file_;
  std::uint64_t size_ = 0;  // of the file, bytes
  std::uint64_t left_ = 0;  // bytes that may still be read
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::byte> names_;
};

}  // namespace kiln::cli
