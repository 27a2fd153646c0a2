// kiln cache why: where a problem's kernel is, or what of its key differs from the nearest one.
#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "cli/cache_commands.hpp"
#include "cli/commands.hpp"
#include "cli/entries.hpp"
#include "cli/printable.hpp"
#include "core/error.hpp"
#include "plan/kernel_cache.hpp"

namespace kiln::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// How far an entry is from a key: fields that differ, then lines of the source that it lacks.
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

void print_pair(const std::string& wanted, const std::string& there) {
  std::cout << "  wanted       " << wanted << "\n  there        " << printable(there) << '\n';
}

void print_source_difference(const std::string& wanted, const std::string& there) {
  const auto a = lines_of(wanted), b = lines_of(there);
  std::size_t first = 0, differing = 0;
  while (first < std::min(a.size(), b.size()) && a[first] == b[first]) ++first;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    differing += i >= a.size() || i >= b.size() || a[i] != b[i];
  std::cout << "differs in     source, first in line " << first + 1 << " (of " << differing
            << " that differ)\n";
  print_pair(first < a.size() ? a[first] : "(the end)", first < b.size() ? b[first] : "(the end)");
}

void print_difference(const cache::Key& key, const StoredEntry& entry) {
  for (const cache::Field& field : key.content()) {
    const std::string there = entry.field(field.name);
    if (there == field.value) continue;
    if (field.name == "source") {
      print_source_difference(field.value, there);
    } else {
      std::cout << "differs in     " << field.name << '\n';
      print_pair(field.value, there);
    }
  }
  if (!key.producer().empty() && key.producer() != entry.producer) {
    std::cout << "differs in     producer (the compiler's exact build)\n";
    print_pair(key.producer(), entry.producer);
  }
}

}  // namespace

int explain_problem(const std::string& problem, const std::string& arch) {
  const AskedKernel asked = kernel_of_problem(problem, arch);
  const cache::Key& key = asked.text.key;
  std::cout << "problem        " << asked.problem << "\narchitecture   " << asked.arch
            << "\nengine         " << asked.engine << "\nkey            " << key.text() << '\n';
  if (!asked.text.compiler) std::cout << "compiler       none: " << asked.text.why_not << '\n';
  const CachedKernel found = find_kernel(key);
  if (found.lookup.entry) {
    std::cout << "hit            "
              << (found.origin == KILN_KERNEL_BUNDLE ? "in bundle " + found.lookup.detail
                                                     : "in the user's cache")
              << ", made by " << printable(found.lookup.producer) << '\n';
    return 0;
  }
  std::cout << "miss           " << cache::name_of(found.lookup.miss)
            << (found.lookup.detail.empty() ? "" : ": " + found.lookup.detail) << '\n';
  const std::vector<std::string> source = lines_of(asked.text.source);
  const std::multiset<std::string> wanted(source.begin(), source.end());
  std::optional<StoredEntry> nearest;
  Distance least;
  visit_all_entries([&](const StoredEntry& entry) {
    if (!entry.flaw.empty()) return;
    const Distance far = distance(key, wanted, entry);
    if (nearest && !far.less_than(least)) return;
    nearest = entry;
    least = far;
  });
  if (!nearest) {
    std::cout << "nearest        none: there is no entry at all\n";
    return 0;
  }
  std::cout << "nearest        " << nearest->key << " in " << nearest->place << '\n';
  print_difference(key, *nearest);
  return 0;
}

}  // namespace kiln::cli
