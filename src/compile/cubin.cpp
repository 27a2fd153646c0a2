#include "compile/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "compile/elf_bytes.hpp"
#include "core/error.hpp"

namespace kiln {
namespace {

struct Section {
  Elf64_Shdr header;
  std::string_view name;
  ElfBytes bytes;  // empty if the section has no bytes in the file
};

std::vector<Section> sections_of(ElfBytes file) {
  const auto elf = elf_value<Elf64_Ehdr>(file, 0);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  std::vector<Section> sections;
  for (unsigned i = 0; i < elf.e_shnum; ++i) {
    const auto header = elf_value<Elf64_Shdr>(file, elf.e_shoff + i * sizeof(Elf64_Shdr));
    const bool in_file = header.sh_type != SHT_NOBITS;
    sections.push_back(
        {header, "", in_file ? elf_part(file, header.sh_offset, header.sh_size) : ElfBytes()});
  }
  if (elf.e_shstrndx < sections.size())
    for (Section& section : sections)
      section.name = elf_text(sections[elf.e_shstrndx].bytes, section.header.sh_name);
  return sections;
}

// An attribute of .nv.info has a byte of format, a byte of attribute, and 16 bits that are its
// value or, in the sized format, the number of bytes that follow. The attributes read here are
// sized and hold a symbol and a number.
constexpr std::uint8_t sized_format = 4;
enum Attribute : std::uint8_t { frame_size = 0x11, register_count = 0x2f };

template <class Visit>
void for_each_attribute(ElfBytes info, Visit visit) {
  for (std::uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = elf_value<std::uint8_t>(info, at);
    const auto attribute = elf_value<std::uint8_t>(info, at + 1);
    const auto size = elf_value<std::uint16_t>(info, at + 2);
    at += 4;
    if (format != sized_format) continue;
    if (size >= 8)
      visit(attribute, elf_value<std::uint32_t>(info, at), elf_value<std::uint32_t>(info, at + 4));
    at += size;
  }
}

}  // namespace

KernelResources resources_of(ElfBytes cubin, const std::string& entry) {
  const std::vector<Section> sections = sections_of(cubin);
  const auto find = [&](const std::string& name) -> const Section* {
    for (const Section& section : sections)
      if (section.name == name) return &section;
    return nullptr;
  };
  const Section* const code = find(".text." + entry);
  const Section* const symbols = find(".symtab");
  const Section* const names = find(".strtab");
  const Section* const info = find(".nv.info");
  if (!code || !symbols || !names || !info)
    fail(KILN_STATUS_INTERNAL_ERROR, "this is no cubin with a kernel ", entry);
  KernelResources out;
  out.code_bytes = static_cast<int>(code->header.sh_size);
  if (const Section* const shared = find(".nv.shared." + entry)) {
    // From compute capability 9.0 on, this size includes the 1 KiB per block that the system
    // reserves.
    constexpr int reserved = 1024;
    const bool counted_in = find(".nv.shared.reserved.0") != nullptr;
    out.shared_memory =
        std::max(0, static_cast<int>(shared->header.sh_size) - (counted_in ? reserved : 0));
  }
  for_each_attribute(info->bytes, [&](int attribute, std::uint32_t symbol, std::uint32_t value) {
    const auto entry_symbol = elf_value<Elf64_Sym>(symbols->bytes, symbol * sizeof(Elf64_Sym));
    if (elf_text(names->bytes, entry_symbol.st_name) != entry) return;
    if (attribute == register_count) out.registers = static_cast<int>(value);
    if (attribute == frame_size) out.local_memory = static_cast<int>(value);
  });
  return out;
}

}  // namespace kiln
