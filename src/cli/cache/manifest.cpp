#include "cli/cache/manifest.hpp"

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/operation/operation.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "engines/engine.hpp"
#include "engines/names.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {
namespace {

using nlohmann::json;

struct Line {
  std::string text;  // command, flags and problem
  ManifestDefaults choices;
  std::vector<DeviceDescription> devices;
  Terms terms;
};

[[noreturn]] void wrong(const json& object, const char* field, const char* expected) {
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

Line read_object(const std::string& text, const ManifestDefaults& defaults) {
  const json object = parse_json(text);
  if (!object.is_object())
    fail(KILN_STATUS_BAD_PARAM, "no JSON object; expected {\"problem\":...}");
  Line line;
  const auto text_of_field = [&](const char* field, const char* expected) {
    if (!object.contains(field) || !object[field].is_string()) wrong(object, field, expected);
    return object[field].get<std::string>();
  };
  line.text = text_of_field("problem", "a problem line");
  if (object.contains("command"))
    line.text = text_of_field("command", "conv, local, pool, act, softmax, norm or tensor") + " " +
                line.text;
  constexpr auto is_text = static_cast<bool (json::*)() const noexcept>(&json::is_string);
  constexpr auto is_count = static_cast<bool (json::*)() const noexcept>(&json::is_number_unsigned);
  line.choices.types =
      list_of<std::string>(object, "dt", defaults.types, is_text, "f32, f64, f16 or bf16");
  line.choices.layouts =
      list_of<std::string>(object, "layout", defaults.layouts, is_text, "nchw or nhwc");
  line.choices.batches = list_of<std::int64_t>(object, "batch", defaults.batches, is_count,
                                               "a batch size, or a list of them");
  if (object.contains("only_engine")) {
    line.terms.only_engine = engine_name(text_of_field("only_engine", "an engine's name"));
    const auto list = engines();
    if (std::none_of(list.begin(), list.end(), [&](const Engine* engine) {
          return engine->name() == line.terms.only_engine;
        }))
      wrong(object, "only_engine", "an engine's name, as `kiln info` lists them");
  }
  if (object.contains("workspace")) {
    const json& bytes = object["workspace"];
    if (!bytes.is_number_unsigned() || bytes.get<std::uint64_t>() > most_workspace)
      wrong(object, "workspace", cat("a number of bytes, 0 to ", most_workspace).c_str());
    line.terms.workspace = bytes.get<std::size_t>();
  }
  if (defaults.other_devices) return line;
  for (const std::string& arch : list_of<std::string>(object, "architecture", {}, is_text,
                                                      "an architecture, or a list of them")) {
    line.devices.push_back(architecture_of(arch));
    if (!object.contains("multiprocessors")) continue;
    const json& count = object["multiprocessors"];
    if (!count.is_number_unsigned() || count == 0 || count > 100000)
      wrong(object, "multiprocessors", "how many the device has");
    line.devices.back() = known_chip_of_size(line.devices.back(), count.get<int>());
  }
  return line;
}

void add_problems(const std::string& place, const Line& line, Manifest& manifest) {
  std::string text = line.text;
  const std::unique_ptr<Operation> operation = take_operation(text);
  std::vector<std::string> texts;
  for (const std::int64_t batch : line.choices.batches)
    texts.push_back(with_batch(operation->command(), text, batch));
  if (texts.empty()) texts.push_back(text);
  constexpr std::size_t most = 100'000;
  if (line.choices.types.size() > most || line.choices.layouts.size() > most ||
      line.choices.types.size() * line.choices.layouts.size() > most / texts.size())
    fail(KILN_STATUS_BAD_PARAM, "dt, layout and batch ask for more than ", most, " problems");
  for (const std::string& type : line.choices.types) {
    for (const std::string& layout : line.choices.layouts) {
      operation->type = type;
      operation->layout = layout;
      for (const std::string& problem : texts)
        manifest.entries.push_back(
            {place, parse_line(*operation, problem).problem, line.devices, line.terms});
    }
  }
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

std::string with_batch(const std::string& command, const std::string& line, std::int64_t batch) {
  // The problem is the last word. A blank between double quotes, in its name, does not end a word.
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == ' ' && !quoted) begin = i + 1;
  }
  const bool has_entries = command == "conv" || command == "local" || command == "pool";
  const std::string problem = line.substr(begin), size = std::to_string(batch);
  return line.substr(0, begin) +
         (has_entries ? replace_batch_entry(problem, size) : replace_first_sizes(problem, size));
}

Manifest read_manifest(const std::string& path, const ManifestDefaults& defaults) {
  return parse_manifest(path, read_problem_file(path), defaults);
}

Manifest parse_manifest(const std::string& name, const std::string& lines,
                        const ManifestDefaults& defaults) {
  Manifest manifest;
  for (const auto& [number, text] : problem_lines(lines)) {
    const std::string place = cat(name, ":", number);
    try {
      add_problems(
          place, text.starts_with('{') ? read_object(text, defaults) : Line{text, defaults, {}, {}},
          manifest);
    } catch (const Error& error) {
      constexpr std::size_t most = 300;
      const std::string shown = text.size() <= most ? text : text.substr(0, most) + "...";
      manifest.flaws.push_back(cat(place, ": ", shown, ": ", error.what()));
    }
  }
  return manifest;
}

}  // namespace kiln::cli
