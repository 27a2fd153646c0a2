#include "cli/operation/read_line.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/split.hpp"
#include "engines/method.hpp"
#include "engines/names.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {
namespace {

using nlohmann::json;

// A line before its words are understood, with what a JSON object says beside them.
struct Outer {
  std::string words;
  std::vector<std::string> types, layouts, chips;
  std::vector<std::int64_t> batches;
  std::string engine;  // "": not given
  std::optional<std::size_t> workspace;
};

[[noreturn]] void wrong(const json& object, const char* field, const std::string& expected) {
  fail(KILN_STATUS_BAD_PARAM, field, " is ",
       object.contains(field) ? text_of_json(object[field]) : "missing", "; expected ", expected);
}

// The values of a field that holds one value or a list of them; `fallback` if the field is missing.
template <class Value>
std::vector<Value> list_of(const json& object, const char* field, std::vector<Value> fallback,
                           bool (json::*is_one)() const noexcept, const char* expected) {
  const auto found = object.find(field);
  if (found == object.end()) return fallback;
  const json list = found->is_array() ? *found : json::array({*found});
  std::vector<Value> values;
  for (const json& value : list) {
    if (!(value.*is_one)()) wrong(object, field, expected);
    values.push_back(value.get<Value>());
  }
  if (values.empty()) wrong(object, field, expected);
  return values;
}

// A whole number of a field; none if the field is missing.
std::optional<std::size_t> number_of(const json& object, const char* field, std::size_t least,
                                     std::size_t most, const char* what) {
  const auto found = object.find(field);
  if (found == object.end()) return std::nullopt;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() < least ||
      found->get<std::uint64_t>() > most)
    wrong(object, field, cat(what, ", ", least, " to ", most));
  return found->get<std::size_t>();
}

Outer read_object(const std::string& text, const LineDefaults& defaults) {
  const json object = parse_json(text);
  if (!object.is_object())
    fail(KILN_STATUS_BAD_PARAM, "no JSON object; expected {\"problem\":...}");
  const auto text_of_field = [&](const char* field, const char* expected) {
    if (!object.contains(field) || !object[field].is_string()) wrong(object, field, expected);
    return object[field].get<std::string>();
  };
  constexpr auto is_text = static_cast<bool (json::*)() const noexcept>(&json::is_string);
  constexpr auto is_count = static_cast<bool (json::*)() const noexcept>(&json::is_number_unsigned);
  Outer line;
  line.words = text_of_field("problem", "a problem line");
  if (object.contains("command"))
    line.words = text_of_field("command", operation_names().c_str()) + " " + line.words;
  line.types = list_of<std::string>(object, "dt", defaults.types, is_text, "f32, f64, f16 or bf16");
  line.layouts = list_of<std::string>(object, "layout", defaults.layouts, is_text, "nchw or nhwc");
  line.batches = list_of<std::int64_t>(object, "batch", defaults.batches, is_count,
                                       "a batch size, or a list of them");
  if (object.contains("only_engine"))
    line.engine = text_of_field("only_engine", "an engine's name");
  line.workspace = number_of(object, "workspace", 0, most_workspace, "a number of bytes");
  line.chips = list_of<std::string>(object, "architecture", {}, is_text,
                                    "an architecture, or a list of them");
  constexpr std::size_t most_multiprocessors = 100'000;
  if (const auto count =
          number_of(object, "multiprocessors", 1, most_multiprocessors, "how many the device has"))
    for (std::string& chip : line.chips)
      if (chip != "host") chip += cat(":", *count);
  return line;
}

// Splits a text into words at blanks; blanks between double quotes are part of a word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (blank && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == '"') quoted = !quoted;
    words.back() += c;
  }
  return words;
}

// The engine's present name. Throws BAD_PARAM if there is none.
std::string known_engine(const std::string& given) {
  std::string name(engine_name(given));
  std::vector<std::string> names;
  for (const Method* method : methods()) {
    if (method->name() == name) return name;
    names.emplace_back(method->name());
  }
  fail(KILN_STATUS_BAD_PARAM, "the engine is ", printable(given), "; expected one of ",
       join(names, ", "));
}

// The operation that the first word names, which is removed; else the defaults' own.
std::unique_ptr<Operation> take_command(std::vector<std::string>& words,
                                        const LineDefaults& defaults) {
  std::unique_ptr<Operation> named;
  for (std::unique_ptr<Operation>& operation : operations())
    if (!words.empty() && words.front() == operation->command()) named = std::move(operation);
  const bool letters = !words.empty() && words.front().find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  if (!named && letters && words.size() > 1)
    fail(KILN_STATUS_BAD_PARAM, "\"", words.front().substr(0, 60), "\" is no command; expected ",
         operation_names());
  if (named) words.erase(words.begin());
  if (defaults.own != nullptr &&
      (!named || std::string_view(named->command()) == defaults.own->command()))
    return defaults.own->clone();
  return named ? std::move(named) : std::move(operations().front());
}

// The words of a line after its command, as they stand.
struct Inner {
  static constexpr std::uint64_t no_workspace = std::numeric_limits<std::uint64_t>::max();
  std::string problem, chips, engine;  // "": not given
  std::uint64_t workspace = no_workspace;
};

Inner inner_of(Operation& operation, const std::vector<std::string>& words) {
  Inner line;
  const auto declare = [&](Command command) {
    operation.add_flags(command);
    command.add_option("--arch", line.chips);
    command.add_option("--engine", line.engine);
    command.add_option("--workspace", line.workspace);
    command.add_option("PROBLEM", line.problem);
  };
  try {
    parse_words(cat(operation.command(), " lines"), declare, words);
  } catch (const UsageError& error) {
    fail(KILN_STATUS_BAD_PARAM, "the line's flags: ", error.what());
  }
  if (line.problem.empty())
    fail(KILN_STATUS_BAD_PARAM, "the line has no problem; expected one behind its flags");
  return line;
}

// Whether problems of the command are entries such as "mb2ic3", rather than shapes.
bool has_entries(std::string_view command) {
  return command == "conv" || command == "local" || command == "pool";
}

std::vector<ReadLine> problems_of(const Outer& outer, const LineDefaults& defaults) {
  std::vector<std::string> words = words_of(outer.words);
  const bool alone = words.size() == 1;
  const std::unique_ptr<Operation> operation = take_command(words, defaults);
  constexpr std::size_t most = 100'000;
  const std::size_t batches = std::max<std::size_t>(outer.batches.size(), 1);
  if (outer.types.size() > most || outer.layouts.size() > most ||
      outer.types.size() * outer.layouts.size() > most / batches)
    fail(KILN_STATUS_BAD_PARAM, "dt, layout and batch ask for more than ", most, " problems");
  std::vector<ReadLine> lines;
  for (const std::string& type : outer.types) {
    for (const std::string& layout : outer.layouts) {
      const std::unique_ptr<Operation> own = operation->clone();
      own->type = type;
      own->layout = layout;
      const Inner inner = inner_of(*own, words);
      Grant grant = defaults.grant;
      if (const std::string& engine = inner.engine.empty() ? outer.engine : inner.engine;
          !engine.empty())
        grant.only_engine = known_engine(engine);
      if (inner.workspace != Inner::no_workspace)
        grant.workspace = inner.workspace;
      else if (outer.workspace)
        grant.workspace = *outer.workspace;
      grant.workspace = std::min(grant.workspace, most_workspace);
      std::vector<std::string> chips = outer.chips;
      if (!inner.chips.empty()) {
        chips.clear();
        for (const std::string_view chip : split(inner.chips, ',')) chips.emplace_back(chip);
      }
      std::vector<std::string> problems;
      for (const std::int64_t batch : outer.batches)
        problems.push_back(with_batch(own->command(), inner.problem, batch));
      // A problem alone keeps the blanks before it, so that columns in messages are the line's.
      if (problems.empty())
        problems.push_back(has_entries(own->command()) && outer.words.ends_with(inner.problem) &&
                                   alone
                               ? outer.words
                               : inner.problem);
      for (const std::string& problem : problems)
        lines.push_back({own->make(problem), own->name_in(problem), grant, chips});
    }
  }
  return lines;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Replaces the batch of a convolution's or a pooling's line: "mb2", anywhere before the name; in
// front of a line that has none.
std::string replace_batch_entry(const std::string& line, const std::string& batch) {
  const std::size_t end = std::min(line.find("n\""), line.size());
  const std::size_t at = line.find("mb");
  if (at >= end) return "mb" + batch + "_" + line;
  std::size_t stop = at + 2;
  while (stop < line.size() && is_digit(line[stop])) ++stop;
  return line.substr(0, at + 2) + batch + line.substr(stop);
}

// Replaces the batch of a line of shapes such as "16x64x28x28:1x64x1x1": the first size of every
// shape, where it is that of the first shape.
std::string replace_first_sizes(const std::string& shapes_and_name, const std::string& batch) {
  const std::size_t name = std::min(shapes_and_name.find_first_of("_n"), shapes_and_name.size());
  const std::string line = shapes_and_name.substr(0, name);
  const std::string old = line.substr(0, line.find_first_not_of("0123456789"));
  std::string out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(':', at), line.size());
    std::string shape = line.substr(at, end - at);
    const std::string first = shape.substr(0, shape.find_first_not_of("0123456789"));
    if (!first.empty() && first == old) shape.replace(0, first.size(), batch);
    out += (at == 0 ? "" : ":") + shape;
    at = end + 1;
  }
  return out + shapes_and_name.substr(name);
}

}  // namespace

std::string with_batch(const std::string& command, const std::string& problem, std::int64_t batch) {
  // The rows of one product are those of a alone.
  const std::size_t a = problem.find(':');
  if (command == "matmul" && a != std::string::npos &&
      std::count(problem.begin(), problem.begin() + static_cast<std::ptrdiff_t>(a), 'x') == 1)
    return replace_first_sizes(problem.substr(0, a), std::to_string(batch)) + problem.substr(a);
  return has_entries(command) ? replace_batch_entry(problem, std::to_string(batch))
                              : replace_first_sizes(problem, std::to_string(batch));
}

std::vector<ReadLine> read_line(const std::string& text, const LineDefaults& defaults) {
  if (text.starts_with('{')) return problems_of(read_object(text, defaults), defaults);
  return problems_of({.words = std::string(without_comment(text)),
                      .types = defaults.types,
                      .layouts = defaults.layouts,
                      .chips = {},
                      .batches = defaults.batches,
                      .engine = {},
                      .workspace = {}},
                     defaults);
}

ReadLine read_one(const std::string& text, const LineDefaults& defaults) {
  std::vector<ReadLine> lines = read_line(text, defaults);
  if (lines.size() != 1)
    fail(KILN_STATUS_BAD_PARAM, "the line lists ", lines.size(), " problems; expected one");
  if (lines.front().chips.size() > 1)
    fail(KILN_STATUS_BAD_PARAM, "the line names ", join(lines.front().chips, ","),
         "; expected one chip");
  return std::move(lines.front());
}

}  // namespace kiln::cli
