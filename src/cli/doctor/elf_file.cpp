#include "cli/doctor/elf_file.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "cli/usage_error.hpp"
#include "compile/elf_bytes.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

// What a file is that is no 64-bit little-endian ELF file, by its first bytes; "" if it is one.
std::string other_kind(const Elf64_Ehdr& header, std::uint64_t size) {
  if (size == 0) return "is empty";
  const std::string_view magic(reinterpret_cast<const char*>(header.e_ident), EI_NIDENT);
  if (magic.starts_with("#!"))
    return "is a script; the program that it starts, or a library that this loads, can be asked";
  if (magic.starts_with("!<arch>"))
    return "is an archive of object files; the program that it is linked into can be asked";
  if (!magic.starts_with(ELFMAG)) return "is no ELF file";
  if (size < sizeof header) return "is an ELF file cut short";
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is an ELF file of 32 bits";
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return "is a big-endian ELF file";
  return "";
}

}  // namespace

ElfFile::ElfFile(const std::string& path) : path_(path), file_(path) {
  const auto cannot_read = [&] {
    throw UsageError(cat("cannot read ", path, ": ", cache::error_text(file_.error())));
  };
  struct stat status {};
  if (file_.error() != 0 || !file_.status(status)) cannot_read();
  if (S_ISDIR(status.st_mode)) refuse("is a folder");
  if (!S_ISREG(status.st_mode)) refuse("is no regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
  left_ = 2 * size_ + sizeof header_;  // names are read twice
  const std::vector<std::byte> beginning = file_.read(0, sizeof header_);
  if (file_.error() != 0) cannot_read();
  std::ranges::copy(beginning, reinterpret_cast<std::byte*>(&header_));
  if (const std::string kind = other_kind(header_, beginning.size()); !kind.empty()) refuse(kind);

  if (header_.e_shoff == 0)
    throw UsageError(cat(path, " has no section headers, so nothing says what it calls"));
  if (header_.e_shentsize != sizeof(Elf64_Shdr))
    refuse(cat("says that its section headers have ", header_.e_shentsize, " bytes each"));
  std::uint64_t count = header_.e_shnum;
  if (count == 0)  // it did not fit the header's field, and is in the first section header
    count = elf_value<Elf64_Shdr>(read(header_.e_shoff, sizeof(Elf64_Shdr)), 0).sh_size;
  if (count > size_ / sizeof(Elf64_Shdr))
    refuse(cat("says that it has ", count, " sections, in ", size_, " bytes"));
  const auto table = read(header_.e_shoff, count * sizeof(Elf64_Shdr));
  for (std::uint64_t i = 0; i < count; ++i)
    sections_.push_back(elf_value<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr)));
  std::uint64_t names = header_.e_shstrndx;
  if (names == SHN_XINDEX && count > 0) names = sections_[0].sh_link;
  if (names < count && sections_[names].sh_type == SHT_STRTAB) names_ = read(sections_[names]);
}

std::string_view ElfFile::name_of(const Elf64_Shdr& section) const {
  return elf_text(names_, section.sh_name);
}

std::vector<std::byte> ElfFile::read(const Elf64_Shdr& section) {
  return section.sh_type == SHT_NOBITS ? std::vector<std::byte>()
                                       : read(section.sh_offset, section.sh_size);
}

std::vector<std::byte> ElfFile::read_strings_of(const Elf64_Shdr& section) {
  if (section.sh_link >= sections_.size())
    refuse(cat("takes names from section ", section.sh_link, " of ", sections_.size()));
  return read(sections_[section.sh_link]);
}

void ElfFile::read_pieces(const Elf64_Shdr& section, std::size_t overlap,
                          const std::function<void(std::span<const std::byte>)>& visit) {
  if (section.sh_type == SHT_NOBITS) return;
  constexpr std::uint64_t step = std::uint64_t{1} << 20;
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < section.sh_size; at += step) {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(overlap, piece.size()));
    piece.erase(piece.begin(), piece.end() - kept);
    const auto next = read(section.sh_offset + at, std::min(step, section.sh_size - at));
    piece.insert(piece.end(), next.begin(), next.end());
    visit(piece);
  }
}

void ElfFile::refuse(const std::string& why) const {
  throw UsageError(
      cat(path_, " ", why, "; expected a program or a shared library of Linux, of 64 bits"));
}

std::vector<std::byte> ElfFile::read(std::uint64_t offset, std::uint64_t size) {
  if (offset > size_ || size > size_ - offset)
    refuse(cat("is cut short or damaged: it has ", size_, " bytes and says that ", size, " lie at ",
               offset));
  if (size > left_) refuse("is damaged: its sections overlap");
  left_ -= size;
  std::vector<std::byte> bytes = file_.read(offset, size);
  if (bytes.size() != size) refuse("became shorter while it was read");
  return bytes;
}

}  // namespace kiln::cli
