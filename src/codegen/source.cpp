#include "codegen/source.hpp"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "codegen/embedded.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/log/log.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Warns once of a folder that has none of the library's kernel files: the library's own are used
// then, and an edit in a misspelt place would have no effect.
void warn_of_strange_folder(const std::string& folder) {
  static constinit std::atomic<bool> looked{false};
  if (looked.exchange(true)) return;
  std::error_code ignored;
  for (const EmbeddedFile& file : embedded_files())
    if (fs::exists(cat(folder, "/", file.path), ignored)) return;
  log::warn(cat("KILN_KERNEL_SOURCE_DIR is ", folder,
                ", which has no file of the library's kernels, such as ", embedded_files()[0].path,
                "; expected a folder like kernel_sources/, as `kiln inspect --sources FOLDER` "
                "writes it. The library's own files are used"));
}

// The path of the edited version of a kernel file; "" if KILN_KERNEL_SOURCE_DIR has none.
std::string edited_path(std::string_view path) {
  const std::string& folder = config().kernel_source_dir;
  if (folder.empty()) return "";
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    fail(KILN_STATUS_BAD_PARAM, "KILN_KERNEL_SOURCE_DIR is ", folder,
         "; expected a folder like kernel_sources/, with the files to be taken from it");
  warn_of_strange_folder(folder);
  std::string name = cat(folder, "/", path);
  return fs::exists(name, ignored) ? name : "";
}

// The edited version of a kernel file, if there is one. It is read again for each text, so that the
// text and its cache key always match the file.
std::optional<std::string> edited_file(std::string_view path) {
  const std::string name = edited_path(path);
  if (name.empty()) return std::nullopt;
  std::error_code ignored;
  constexpr std::uintmax_t most_bytes = 16 << 20;
  std::ifstream file;
  if (fs::is_regular_file(name, ignored) && fs::file_size(name, ignored) <= most_bytes)
    file.open(name, std::ios::binary);
  if (!file.is_open())
    fail(KILN_STATUS_BAD_PARAM, name, ", which KILN_KERNEL_SOURCE_DIR stands for, cannot be read; ",
         "expected a regular file of at most ", most_bytes >> 20, " MiB");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::string kernel_file(std::string_view path) {
  if (auto edited = edited_file(path)) return std::move(*edited);
  for (const EmbeddedFile& file : embedded_files())
    if (file.path == path) return std::string(file.text);
  if (const std::string& folder = config().kernel_source_dir; !folder.empty())
    fail(KILN_STATUS_BAD_PARAM, "a kernel includes ", path, ", which is neither in ", folder,
         " (KILN_KERNEL_SOURCE_DIR) nor in the library");
  fail(KILN_STATUS_INTERNAL_ERROR, "kernel_sources/", path, " is not embedded in the library");
}

// Whether an include path leaves kernel_sources/ or the folder that replaces it.
bool leads_out(const fs::path& path) {
  return path.is_absolute() ||
         std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

// The path, if the line is `#include "path"`.
std::optional<std::string_view> included_path(std::string_view line) {
  constexpr std::string_view directive = "#include \"";
  if (!line.starts_with(directive)) return std::nullopt;
  line.remove_prefix(directive.size());
  return line.substr(0, line.find('"'));
}

// Expands includes: each file replaces its first #include and is left out later. `files` are the
// included files, in order; `lines` tell where each line of the text comes from.
struct Expansion {
  kilnDeviceKind_t kind;
  std::string text{};
  std::vector<SourceFile> files{};
  std::vector<SourceLine> lines{};
  int depth = 0;  // nesting of the files that are being expanded

  // path: of the edited file that the text is; "": another.
  void append(std::string_view rest, const std::string& path = "") {
    for (int number = 1; !rest.empty(); ++number) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end);
      if (line.starts_with("#pragma once")) continue;
      if (const auto included = included_path(line)) {
        append_file(std::string(*included));
      } else {
        text += line;
        lines.push_back({path, number});
      }
    }
  }

  void append_file(std::string path) {
    if (path.starts_with("target/")) path.replace(0, 6, kind == KILN_DEVICE_CUDA ? "cuda" : "host");
    for (const SourceFile& file : files)
      if (file.path == path) return;
    constexpr int most_depth = 200;  // GCC's limit
    if (leads_out(path))
      fail(KILN_STATUS_BAD_PARAM, "a kernel includes ", path,
           "; expected a path below kernel_sources/, without \"..\"");
    if (depth == most_depth)
      fail(KILN_STATUS_BAD_PARAM, "kernel files include one another more than ", most_depth,
           " deep, down to ", path);
    text += cat("// ---- ", path, "\n");
    lines.emplace_back();
    const std::string content = kernel_file(path);
    files.push_back({path, content});
    ++depth;
    append(content, edited_path(path));
    --depth;
  }
};

std::string hex(std::uint32_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%08" PRIx32 "u", value);
  return text;
}
std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%016" PRIx64 "ull", value);
  return text;
}

// For example "n / 56 == mulhi(n, 0x92492493u) >> 5".
std::string formula(const MagicDivisor& magic) {
  const std::string quotient = cat("n / ", magic.divisor, " == ");
  if (magic.multiplier == 0) return cat(quotient, "n >> ", magic.shift);
  const std::string high = cat("mulhi(n, ", hex(magic.multiplier), ")");
  if (magic.add) return cat(quotient, "(((n - t) >> 1) + t) >> ", magic.shift, ", t = ", high);
  return cat(quotient, high, " >> ", magic.shift);
}
std::string formula(const WideMagicDivisor& magic) {
  const std::string quotient = cat("n / ", magic.divisor, " == ");
  if (magic.multiplier == 0) return cat(quotient, "n >> ", magic.shift);
  return cat(quotient, "mulhi(n, ", hex(magic.multiplier), ") >> ", magic.shift);
}

// Declares a divisor as four constants; divide<> of common/magic.cuh takes the last three.
std::string divisor_constants(const std::string& name, const char* type, std::uint64_t divisor,
                              const std::string& multiplier, std::uint32_t shift, bool add,
                              const std::string& comment) {
  return cat("constexpr ", type, " ", name, " = ", divisor, ", ", name, "_MUL = ", multiplier, ", ",
             name, "_SHIFT = ", shift, ", ", name, "_ADD = ", add ? 1 : 0, ";  // ", comment);
}

struct PrintDeclaration {
  const std::string& name;
  std::string operator()(std::int64_t value) const {
    const bool wide = value != static_cast<std::int32_t>(value);
    return cat("constexpr ", wide ? "long long " : "int ", name, " = ", value, wide ? "ll;" : ";");
  }
  std::string operator()(bool value) const {
    return cat("constexpr bool ", name, " = ", value ? "true" : "false", ";");
  }
  std::string operator()(const TypeName& value) const {
    const bool own = value.name.ends_with("_t");  // a type of kernel_sources, declared later
    return cat("using ", name, " = ", own ? "struct " : "", value.name, ";");
  }
  std::string operator()(const MacroText& value) const {
    return cat("#define ", name, " ", value.text);
  }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    const bool wide = std::any_of(values.begin(), values.end(), [](std::int64_t value) {
      return value != static_cast<std::int32_t>(value);
    });
    return cat("constexpr ", wide ? "long long " : "int ", name, "[] = {", join(values, ", "),
               "};");
  }
  std::string operator()(const MagicDivisor& value) const {
    return divisor_constants(name, "unsigned", value.divisor, hex(value.multiplier), value.shift,
                             value.add, formula(value));
  }
  std::string operator()(const LateValue& value) const {
    const char* const type = value.kind == LateValue::Kind::number        ? "int"
                             : value.kind == LateValue::Kind::wide_number ? "long long"
                             : value.kind == LateValue::Kind::divisor     ? "unsigned"
                                                                          : "unsigned long long";
    if (value.array) return cat("#define ", name, " (LateArray<", type, ", ", value.offset, ">{})");
    std::string text = cat("#define ", name, " (late_number<", type, ", ", value.offset, ">())");
    // common/magic.cuh reads the dividend's type from MUL, the late divisor's offset from SHIFT,
    // and the fact that it is late from ADD.
    if (value.kind == LateValue::Kind::divisor || value.kind == LateValue::Kind::wide_divisor)
      text += cat("\nconstexpr ", type, " ", name, "_MUL = 0; constexpr unsigned ", name,
                  "_SHIFT = ", value.offset, ", ", name, "_ADD = 2;");
    return text;
  }
  std::string operator()(const WideMagicDivisor& value) const {
    return divisor_constants(name, "unsigned long long", value.divisor, hex(value.multiplier),
                             value.shift, false, formula(value));
  }
};

struct PrintValue {
  std::string operator()(std::int64_t value) const { return cat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const TypeName& value) const { return value.name; }
  std::string operator()(const MacroText& value) const { return value.text; }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return join(values, ", ");
  }
  std::string operator()(const LateValue&) const { return "with the launch"; }
  template <class Divisor>
  std::string operator()(const Divisor& value) const {
    return cat(value.divisor, "  (", formula(value), ")");
  }
};

}  // namespace

TypeName kernel_type(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return {"float"};
    case KILN_DATA_DOUBLE: return {"double"};
    case KILN_DATA_HALF: return {"f16_t"};
    case KILN_DATA_BFLOAT16: return {"bf16_t"};
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "data type ", static_cast<int>(type), " has no kernel type");
}

std::string expand_includes(std::string_view text, kilnDeviceKind_t kind) {
  Expansion expansion{kind};
  expansion.append(text);
  return std::move(expansion.text);
}

std::vector<SourceFile> source_files(const KernelSpec& spec, kilnDeviceKind_t kind) {
  Expansion expansion{kind};
  expansion.append_file(spec.file);
  return std::move(expansion.files);
}

namespace {

// What stands before the kernel's files.
std::string constants_text(const KernelSpec& spec) {
  std::string text =
      cat("// Generated by Kiln: engine ", spec.engine, ", tile ", spec.tile, ".\n\n");
  if (spec.late_bytes > 0)
    text += cat("#define LATE_BYTES ", spec.late_bytes,
                "  // bytes of late constants, ahead of the parameters\n",
                "#define LATE_PARAMETER \"", spec.entry, "_param_0\"\n");
  for (const Constant& constant : spec.constants) {
    text += std::visit(PrintDeclaration{constant.name}, constant.value);
    if (!constant.comment.empty()) text += cat("  // ", constant.comment);
    text += '\n';
  }
  return text + cat("constexpr bool CLUSTERED = ", spec.clustered ? "true" : "false",
                    ";  // blocks may come in clusters\n\n");
}

}  // namespace

std::string generate_source(const KernelSpec& spec, kilnDeviceKind_t kind) {
  return constants_text(spec) + expand_includes(cat("#include \"", spec.file, "\"\n"), kind);
}

std::vector<SourceLine> source_lines(const KernelSpec& spec, kilnDeviceKind_t kind) {
  Expansion expansion{kind};
  expansion.append_file(spec.file);
  const std::string before = constants_text(spec);
  std::vector<SourceLine> lines(
      static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')));
  lines.insert(lines.end(), expansion.lines.begin(), expansion.lines.end());
  return lines;
}

std::string print_constants(const KernelSpec& spec) {
  std::string text;
  for (const Constant& constant : spec.constants)
    if (!std::holds_alternative<MacroText>(constant.value))
      text += cat(constant.name, " = ", std::visit(PrintValue{}, constant.value), "\n");
  return text;
}

}  // namespace kiln
