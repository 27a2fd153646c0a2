#include "torch/choices.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "torch/native.hpp"
#include "torch/stream_clock.hpp"

namespace kiln::torch {
namespace {

struct Times {
  double kiln_us, native_us;
};

struct Choices {
  std::mutex mutex;
  std::string path, context;
  bool writable = false, read = false;
  std::unordered_map<std::string, Times> map;
};
Choices& choices() {
  static auto* const all = new Choices;
  return *all;
}

std::string key_of(const Choices& c, const PlanEntry& entry) {
  const Flags f = flags();
  std::ostringstream key;
  key << c.context << '\t' << device_name(entry.request.device_kind, entry.request.device_index)
      << '\t' << (f.benchmark ? "benchmark" : "heuristic")
      << (f.deterministic ? " deterministic" : "") << (f.allow_tf32 ? " tf32" : "") << '\t'
      << name_of(entry.request.pass) << ' ' << entry.problem_line();
  return key.str();
}

bool parse_number(const std::string& text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

void read_file(Choices& c) {
  c.read = true;
  std::ifstream file(c.path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t second = line.rfind('\t');
    if (second == std::string::npos || second == 0) continue;
    const std::size_t first = line.rfind('\t', second - 1);
    if (first == std::string::npos) continue;
    Times times{};
    if (parse_number(line.substr(first + 1, second - first - 1), times.kiln_us) &&
        parse_number(line.substr(second + 1), times.native_us))
      c.map[line.substr(0, first)] = times;
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

void recall_choice(PlanEntry& entry) {
  Choices& c = choices();
  const std::scoped_lock lock(c.mutex);
  if (c.path.empty()) return;
  if (!c.read) read_file(c);
  if (c.map.empty()) return;
  const auto found = c.map.find(key_of(c, entry));
  if (found == c.map.end()) return;
  const auto [kiln_us, native_us] = found->second;
  entry.set_verdict(kiln_us <= native_us ? PlanEntry::Verdict::kiln : PlanEntry::Verdict::native,
                    kiln_us, native_us);
}

void remember_choice(const PlanEntry& entry, double kiln_us, double native_us) {
  Choices& c = choices();
  const std::scoped_lock lock(c.mutex);
  if (c.path.empty() || !c.writable) return;
  std::ostringstream line;
  line << key_of(c, entry) << '\t' << kiln_us << '\t' << native_us << '\n';
  const std::string text = line.str();
  const int file = open(c.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

}  // namespace kiln::torch
