#include "cli/doctor/cudnn_use.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "cli/doctor/cudnn_functions.hpp"
#include "compile/elf_bytes.hpp"

namespace kiln::cli {
namespace {

constexpr std::string_view prefix = "cudnn";
// The most bytes of a name that are looked at. Longer names are no function's, and a hostile file
// may have many symbols of one long name.
constexpr std::size_t longest = 256;

// Whether a name is one of cuDNN's, which have a capital after the prefix: C programs have names of
// their own with that prefix.
bool is_cudnns(std::string_view name) {
  return name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= 'A' &&
         name[prefix.size()] <= 'Z';
}

std::string_view name_at(ElfBytes strings, std::uint64_t offset) {
  if (offset >= strings.size()) return "";
  return elf_text(strings.subspan(offset, std::min(longest, strings.size() - offset)), 0);
}

// Removes the version that some linkers append in the full symbol table:
// "cudnnCreate@libcudnn.so.9" becomes "cudnnCreate".
std::string without_version(std::string_view name) {
  return std::string(name.substr(0, name.find('@')));
}

void take_symbols(ElfFile& file, const Elf64_Shdr& table, CudnnUse& use) {
  const auto strings = file.read_strings_of(table);
  const auto symbols = file.read(table);
  for (std::size_t at = 0; at < symbols.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = elf_value<Elf64_Sym>(symbols, at);
    const std::string_view name = name_at(strings, symbol.st_name);
    if (!is_cudnns(name)) continue;
    if (symbol.st_shndx == SHN_UNDEF) {
      use.called.insert(without_version(name));
    } else if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
      use.carried.insert(without_version(name));
    }
  }
}

void take_libraries(ElfFile& file, const Elf64_Shdr& dynamic, CudnnUse& use) {
  const auto strings = file.read_strings_of(dynamic);
  const auto entries = file.read(dynamic);
  for (std::size_t at = 0; at < entries.size(); at += sizeof(Elf64_Dyn)) {
    const auto entry = elf_value<Elf64_Dyn>(entries, at);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED) continue;
    const std::string_view name = name_at(strings, entry.d_un.d_val);
    if (name.starts_with("libcudnn")) use.libraries.emplace(name);
  }
}

// Takes the functions that a section of constants has strings of. A string counts if it is the
// whole name, from one zero byte to the next.
void take_texts(ElfFile& file, const Elf64_Shdr& section, CudnnUse& use) {
  std::size_t from = 0;
  file.read_pieces(section, longest, [&](std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (std::size_t at = text.find(prefix, from); at != std::string_view::npos;
         at = text.find(prefix, at + 1)) {
      if (at > 0 && text[at - 1] != '\0') continue;
      const std::string_view rest = text.substr(at, longest);
      const std::size_t end = rest.find('\0');
      if (end == std::string_view::npos || !cudnn_function(rest.substr(0, end))) continue;
      use.named.emplace(rest.substr(0, end));
    }
    from = 1;  // the first byte of a later piece was seen with the one before it
  });
}

}  // namespace

CudnnUse cudnn_use_of(const std::string& path) {
  ElfFile file(path);
  CudnnUse use;
  bool is_dynamic = false;
  // Symbols are read from the dynamic table; a statically linked program has only the full one.
  const bool loaded = std::ranges::any_of(
      file.sections(), [](const Elf64_Shdr& section) { return section.sh_type == SHT_DYNSYM; });
  for (const Elf64_Shdr& section : file.sections()) {
    if (section.sh_type == (loaded ? SHT_DYNSYM : SHT_SYMTAB)) take_symbols(file, section, use);
    if (section.sh_type == SHT_DYNAMIC) {
      is_dynamic = true;
      take_libraries(file, section, use);
    }
    if (section.sh_type == SHT_PROGBITS && file.name_of(section).starts_with(".rodata"))
      take_texts(file, section, use);
  }
  std::erase_if(use.named, [&](const std::string& name) {
    return use.called.contains(name) || use.carried.contains(name);
  });
  use.linked_statically = !is_dynamic && !file.is_object();
  return use;
}

}  // namespace kiln::cli
