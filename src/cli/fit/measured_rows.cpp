#include "cli/fit/measured_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "cli/bench/row.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/usage_error.hpp"
#include "core/split.hpp"
#include "core/text.hpp"
#include "engines/names.hpp"

namespace kiln::cli::fit {
namespace {

constexpr std::array<const char*, 5> columns{"problem", "engine", "tile", "parts", "measured_us"};

// The fields of a line. A field in quotes may contain commas, and quotes that are written twice.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::vector<MeasuredRow> read_measured_rows(const std::string& path) {
  const std::string text = read_file(path), group = std::filesystem::path(path).stem().string();
  std::vector<MeasuredRow> rows;
  std::array<std::size_t, columns.size()> places{};
  std::size_t width = 0, number = 0;  // fields of the head line; number of the current line
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> fields = fields_of(line);
    if (width == 0) {
      width = fields.size();
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto found = std::ranges::find(fields, columns[i]);
        if (found == fields.end())
          throw UsageError(cat(path, ":", number, ": no column ", columns[i],
                               "; expected the head of a file by kiln tune --csv"));
        places[i] = static_cast<std::size_t>(found - fields.begin());
      }
      continue;
    }
    if (fields.size() != width)
      throw UsageError(
          cat(path, ":", number, ": ", fields.size(), " fields; expected ", width, " as the head"));
    const auto field = [&](std::size_t column) { return fields[places[column]]; };
    if (field(4).empty()) continue;
    const std::optional<double> time = number_of<double>(field(4));
    const std::optional<int> parts = number_of<int>(field(3));
    if (!parts || *parts < 1)
      throw UsageError(
          cat(path, ":", number, ": parts is \"", field(3), "\"; expected a number from 1"));
    if (!time || !std::isfinite(*time) || *time <= 0)
      throw UsageError(cat(path, ":", number, ": measured_us is \"", field(4),
                           "\"; expected microseconds above 0, or nothing"));
    rows.push_back(
        {group, field(0), {std::string(engine_name(field(1))), field(2), *parts}, *time});
  }
  if (width == 0)
    throw UsageError(cat(path, ": empty; expected candidates as kiln tune --csv writes them"));
  return rows;
}

std::string text_of(const std::vector<MeasuredRow>& rows) {
  std::string text = join(columns, ",") + "\n";
  for (const MeasuredRow& row : rows)
    text += cat(bench::csv_field(row.problem), ",", row.name.engine, ",",
                bench::csv_field(row.name.tile), ",", row.name.parts, ",",
                significant(row.microseconds, 6), "\n");
  return text;
}

}  // namespace kiln::cli::fit
