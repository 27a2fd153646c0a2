// kiln cache why: where a problem's kernel is, or what of its key differs from the nearest one.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "cli/cache/cache_commands.hpp"
#include "cli/cache/entries.hpp"
#include "cli/json_text.hpp"
#include "cli/printable.hpp"
#include "core/error.hpp"
#include "plan/kernel_cache.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// How far an entry is from a key: how many fields differ, then how many lines of the key's source
// it lacks.
struct Distance {
  std::size_t fields = 0, lines = 0;
  bool less_than(const Distance& other) const {
    return std::pair(fields, lines) < std::pair(other.fields, other.lines);
  }
};

Distance distance(const cache::Key& key, const std::multiset<std::string>& wanted,
                  const StoredEntry& entry) {
  Distance result;
  for (const cache::Field& field : key.content())
    result.fields += entry.field(field.name) != field.value;
  result.fields += !key.producer().empty() && key.producer() != entry.producer;
  if (result.fields == 0) return result;
  std::multiset<std::string> missing = wanted;
  for (const std::string& line : lines_of(entry.field("source")))
    if (const auto found = missing.find(line); found != missing.end()) missing.erase(found);
  result.lines = missing.size();
  return result;
}

// Describes how two sources differ; "line" is the first line that does, counted from 1.
ordered_json source_difference(const std::string& wanted, const std::string& there) {
  const auto a = lines_of(wanted), b = lines_of(there);
  std::size_t first = 0, differing = 0;
  while (first < std::min(a.size(), b.size()) && a[first] == b[first]) ++first;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    differing += i >= a.size() || i >= b.size() || a[i] != b[i];
  return {{"field", "source"},
          {"line", first + 1},
          {"differing_lines", differing},
          {"wanted", first < a.size() ? a[first] : "(the end)"},
          {"there", first < b.size() ? b[first] : "(the end)"}};
}

ordered_json differences(const cache::Key& key, const StoredEntry& entry) {
  ordered_json found = ordered_json::array();
  for (const cache::Field& field : key.content()) {
    const std::string there = entry.field(field.name);
    if (there == field.value) continue;
    found.push_back(
        field.name == "source"
            ? source_difference(field.value, there)
            : ordered_json{{"field", field.name}, {"wanted", field.value}, {"there", there}});
  }
  if (!key.producer().empty() && key.producer() != entry.producer)
    found.push_back({{"field", "producer"}, {"wanted", key.producer()}, {"there", entry.producer}});
  return found;
}

// The entry that differs from the key in the fewest fields, then in the fewest lines of source.
ordered_json nearest_entry(const AskedKernel& asked) {
  const std::vector<std::string> source = lines_of(asked.text.source);
  const std::multiset<std::string> wanted(source.begin(), source.end());
  std::optional<StoredEntry> nearest;
  Distance least;
  visit_all_entries([&](const StoredEntry& entry) {
    if (!entry.flaw.empty()) return;
    const Distance far = distance(asked.text.key, wanted, entry);
    if (nearest && !far.less_than(least)) return;
    nearest = entry;
    least = far;
  });
  if (!nearest) return nullptr;
  return {{"key", nearest->key},
          {"file", nearest->place},
          {"differences", differences(asked.text.key, *nearest)}};
}

ordered_json explanation(const AskedKernel& asked) {
  const cache::Key& key = asked.text.key;
  ordered_json json{{"problem", asked.problem},
                    {"architecture", asked.arch},
                    {"engine", asked.engine},
                    {"key", key.text()}};
  if (!asked.text.compiler) json["no_compiler"] = asked.text.why_not;
  const CachedKernel found = find_kernel(key);
  json["hit"] = found.lookup.entry.has_value();
  if (found.lookup.entry) {
    const bool bundle = found.origin == KILN_KERNEL_BUNDLE;
    json["found_in"] = bundle ? "bundle" : "cache";
    if (bundle) json["bundle"] = found.lookup.detail;
    json["made_by"] = found.lookup.producer;
    return json;
  }
  json["miss"] = cache::name_of(found.lookup.miss);
  if (!found.lookup.detail.empty()) json["detail"] = found.lookup.detail;
  json["nearest"] = nearest_entry(asked);
  return json;
}

// ---- the same as text ---------------------------------------------------------------------------

std::string difference_text(const ordered_json& difference) {
  const std::string field = difference["field"];
  std::string text = cat("differs in     ", field);
  if (field == "source")
    text += cat(", first in line ", difference["line"].get<std::size_t>(), " (of ",
                difference["differing_lines"].get<std::size_t>(), " that differ)");
  if (field == "producer") text += " (the compiler's exact build)";
  return cat(text, "\n  wanted       ", difference["wanted"].get<std::string>(),
             "\n  there        ", printable(difference["there"].get<std::string>()), "\n");
}

std::string explanation_text(const ordered_json& json) {
  const auto value = [&](const char* name) { return json[name].get<std::string>(); };
  std::string text =
      cat("problem        ", value("problem"), "\narchitecture   ", value("architecture"),
          "\nengine         ", value("engine"), "\nkey            ", value("key"), "\n");
  if (json.contains("no_compiler"))
    text += cat("compiler       none: ", value("no_compiler"), "\n");
  if (json["hit"].get<bool>())
    return cat(text, "hit            ",
               json.contains("bundle") ? "in bundle " + value("bundle") : "in the user's cache",
               ", made by ", printable(value("made_by")), "\n");
  text += cat("miss           ", value("miss"),
              json.contains("detail") ? ": " + value("detail") : "", "\n");
  const ordered_json& nearest = json["nearest"];
  if (nearest.is_null()) return text + "nearest        none: there is no entry at all\n";
  text += cat("nearest        ", nearest["key"].get<std::string>(), " in ",
              nearest["file"].get<std::string>(), "\n");
  for (const ordered_json& difference : nearest["differences"]) text += difference_text(difference);
  return text;
}

}  // namespace

int explain_problem(const std::string& problem, const std::string& arch, bool as_json) {
  const ordered_json json = explanation(kernel_of_problem(problem, arch));
  std::cout << (as_json ? json_line(json) : explanation_text(json));
  return 0;
}

}  // namespace kiln::cli
