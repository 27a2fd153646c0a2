#include "torch/policy/choices.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <unordered_map>

#include "torch/convolution/native.hpp"
#include "torch/policy/stream_clock.hpp"

namespace kiln::torch {
namespace {

using Ways = std::vector<CallSite::Way>;

struct Choices {
  std::mutex mutex;
  std::string path, context;
  bool writable = false, read = false;
  std::unordered_map<std::string, Ways> map;
};
Choices& choices() {
  static auto* const all = new Choices;
  return *all;
}

std::string key_of(const Choices& c, const Entries& entries) {
  const PlanRequest& request = first_of(entries).request;
  const Flags f = flags();
  std::ostringstream key;
  key << c.context << " in a row\t" << device_name(request.device_kind, request.device_index)
      << '\t' << (f.benchmark ? "benchmark" : "heuristic")
      << (f.deterministic ? " deterministic" : "") << (f.allow_tf32 ? " tf32" : "") << '\t';
  for (const PlanEntry* entry : entries)
    if (entry != nullptr)
      key << name_of(entry->request.pass) << ' ' << entry->problem_line() << "; ";
  return key.str();
}

std::string text_of(std::span<const CallSite::Way> ways) {
  std::ostringstream out;
  for (const auto& [native, cost] : ways)
    out << (out.tellp() == 0 ? "" : " ") << int{native} << ':' << cost.device_us << '/'
        << cost.host_us;
  return out.str();
}

// Parses the ways of a line; empty if the text is damaged.
Ways ways_of(const std::string& text) {
  constexpr int most_results = 7;
  Ways out;
  std::istringstream in(text);
  int native = 0;
  char colon = 0, slash = 0;
  Cost cost{};
  while (in >> native >> colon >> cost.device_us >> slash >> cost.host_us) {
    const bool sound = native >= 0 && native <= most_results && colon == ':' && slash == '/' &&
                       cost.device_us > 0 && cost.host_us >= 0;
    if (!sound) return {};
    out.push_back({Results(native), cost});
  }
  return in.eof() && out.size() >= 2 ? out : Ways();
}

void read_file(Choices& c) {
  c.read = true;
  std::ifstream file(c.path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.rfind('\t');
    if (tab == std::string::npos) continue;
    if (Ways ways = ways_of(line.substr(tab + 1)); !ways.empty())
      c.map[line.substr(0, tab)] = std::move(ways);
  }
}

}  // namespace

void use_choices_file(std::string path, bool writable, std::string context) {
  Choices& c = choices();
  const std::scoped_lock lock(c.mutex);
  c.path = std::move(path);
  c.context = std::move(context);
  c.writable = writable;
  c.read = false;
  c.map.clear();
}

void recall_choice(const Entries& entries, CallSite& site) {
  Choices& c = choices();
  const std::scoped_lock lock(c.mutex);
  if (c.path.empty()) return;
  if (!c.read) read_file(c);
  if (c.map.empty()) return;
  const auto found = c.map.find(key_of(c, entries));
  if (found != c.map.end()) site.set(found->second);
}

void remember_choice(const Entries& entries, const CallSite& site) {
  Choices& c = choices();
  const std::scoped_lock lock(c.mutex);
  if (c.path.empty() || !c.writable) return;
  const std::string line = key_of(c, entries) + '\t' + text_of(site.ways()) + '\n';
  const int file = open(c.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace kiln::torch
