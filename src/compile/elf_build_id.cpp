#include "compile/elf_build_id.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/process/file_descriptor.hpp"

namespace kiln {
namespace {

bool read_at(int file, std::uint64_t offset, void* out, std::size_t bytes) {
  ssize_t count = 0;
  while ((count = pread(file, out, bytes, static_cast<off_t>(offset))) < 0 && errno == EINTR) {
  }
  return count == static_cast<ssize_t>(bytes);
}

std::size_t align4(std::size_t n) { return (n + 3) & ~std::size_t{3}; }

// The build id among the notes of one segment; "" if it is not there.
std::string find_build_id(const std::vector<unsigned char>& notes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t description = name + align4(note.n_namesz);
    if (description + note.n_descsz > notes.size()) return "";
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", notes[description + i]);
        hex += digits;
      }
      return hex;
    }
    at = description + align4(note.n_descsz);
  }
  return "";
}

}  // namespace

std::string elf_build_id(const std::string& path) {
  constexpr std::size_t largest_notes = 64 * 1024;
  const FileDescriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) fail(KILN_STATUS_NO_COMPILER, path, " cannot be read: ", std::strerror(errno));
  const int file = opened.get();
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header, sizeof header)) return "";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return "";
    if (segment.p_type != PT_NOTE || segment.p_filesz > largest_notes) continue;
    std::vector<unsigned char> notes(segment.p_filesz);
    if (!read_at(file, segment.p_offset, notes.data(), notes.size())) return "";
    if (std::string id = find_build_id(notes); !id.empty()) return id;
  }
  return "";
}

}  // namespace kiln
