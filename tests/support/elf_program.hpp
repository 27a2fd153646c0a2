// A small 64-bit ELF file with the parts that `kiln doctor` reads. It cannot be executed.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace kiln_test {

struct ElfProgram {
  std::vector<std::string> called{};     // undefined symbols
  std::vector<std::string> carried{};    // functions that it defines
  std::vector<std::string> texts{};      // in .rodata, each ended by a zero byte
  std::vector<std::string> libraries{};  // DT_NEEDED
  bool is_dynamic = true;
  Elf64_Half type = ET_DYN;

  std::string bytes() const;
};

namespace detail {

template <class Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends a text and its zero byte to a table. Returns its offset.
inline Elf64_Word add_text(std::string& table, const std::string& text) {
  const auto place = static_cast<Elf64_Word>(table.size());
  table += text;
  table += '\0';
  return place;
}

}  // namespace detail

inline std::string ElfProgram::bytes() const {
  using detail::add_text;
  using detail::append;
  std::string strings(1, '\0'), symbols, dynamic, text, names(1, '\0');
  append(symbols, Elf64_Sym{});
  const auto add_symbol = [&](const std::string& name, Elf64_Section section) {
    Elf64_Sym symbol{};
    symbol.st_name = add_text(strings, name);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = section;
    append(symbols, symbol);
  };
  for (const std::string& name : called) add_symbol(name, SHN_UNDEF);
  for (const std::string& name : carried) add_symbol(name, 1);
  for (const std::string& library : libraries) {
    Elf64_Dyn needed{};
    needed.d_tag = DT_NEEDED;
    needed.d_un.d_val = add_text(strings, library);
    append(dynamic, needed);
  }
  append(dynamic, Elf64_Dyn{});
  for (const std::string& each : texts) add_text(text, each);

  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto add_section = [&](const char* name, Elf64_Word kind, const std::string& content,
                               Elf64_Word link) {
    Elf64_Shdr section{};
    section.sh_name = add_text(names, name);
    section.sh_type = kind;
    section.sh_offset = file.size();
    section.sh_size = content.size();
    section.sh_link = link;
    file += content;
    sections.push_back(section);
  };
  add_section(".dynstr", SHT_STRTAB, strings, 0);
  add_section(".dynsym", SHT_DYNSYM, symbols, 1);
  add_section(".rodata", SHT_PROGBITS, text, 0);
  if (is_dynamic) add_section(".dynamic", SHT_DYNAMIC, dynamic, 1);
  const std::string every_name = names + ".shstrtab" + '\0';
  add_section(".shstrtab", SHT_STRTAB, every_name, 0);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = type;
  header.e_machine = EM_X86_64;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  for (const Elf64_Shdr& section : sections) append(file, section);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace kiln_test
