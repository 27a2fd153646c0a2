#include "cache/store/use_log.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "cache/store/files.hpp"

namespace kiln::cache {
namespace {

// A process notes the uses of at most this many kernels. A larger file is rewritten with each entry
// once.
constexpr int most_notes = 8192;
constexpr std::uint64_t largest_file = std::uint64_t{4} << 20;

std::string path_in(const std::string& version_path) {
  return version_path + "/" + std::string(use_log_name);
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

void read_counts(std::string_view line, std::int64_t time, Uses& uses) {
  while (!line.empty()) {
    const std::string_view word = take_word(line);
    const std::size_t equals = word.find('=');
    std::uint64_t value = 0;
    if (equals == std::string_view::npos || !parse(word.substr(equals + 1), value)) return;
    uses.counts[std::string(word.substr(0, equals))] += value;
  }
  if (uses.since == 0 || time < uses.since) uses.since = time;
}

}  // namespace

struct UseLog::Note {
  EntryName name;
  std::int64_t time;
  Note* next;
};

UseLog::~UseLog() {
  for (Note* note = noted_.load(); note != nullptr;) delete std::exchange(note, note->next);
}

void UseLog::note(const EntryName& name) {
  if (count_.fetch_add(1, std::memory_order_relaxed) >= most_notes) return;
  auto* const note = new (std::nothrow) Note{name, std::time(nullptr), noted_.load()};
  if (note == nullptr) return;
  while (!noted_.compare_exchange_weak(note->next, note)) {
  }
}

void UseLog::flush(const std::string& version_path, std::string_view counts) {
  std::string text;
  for (Note* note = noted_.exchange(nullptr); note != nullptr;) {
    text += "used " + std::to_string(note->time) + " " + note->name.stem() + "\n";
    delete std::exchange(note, note->next);
  }
  count_.store(0, std::memory_order_relaxed);
  if (!counts.empty())
    text += "counted " + std::to_string(std::time(nullptr)) + " " + std::string(counts) + "\n";
  if (text.empty()) return;
  std::uint64_t size = 0;
  static_cast<void>(append_to_file(path_in(version_path), std::as_bytes(std::span(text)), &size));
  if (size > largest_file) rewrite_uses(version_path, read_uses(version_path));
}

Uses read_uses(const std::string& version_path) {
  Uses uses;
  const FileBytes file = read_whole_file(path_in(version_path), 2 * largest_file);
  std::string_view text(reinterpret_cast<const char*>(file.data.get()), file.size);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view kind = take_word(line);
    std::int64_t time = 0;
    if (!parse(take_word(line), time)) continue;
    if (kind == "used") {
      std::int64_t& last = uses.last[std::string(line)];
      last = std::max(last, time);
    } else if (kind == "counted") {
      read_counts(line, time, uses);
    }
  }
  return uses;
}

void rewrite_uses(const std::string& version_path, const Uses& uses) {
  std::string text;
  for (const auto& [name, time] : uses.last)
    text += "used " + std::to_string(time) + " " + name + "\n";
  if (!uses.counts.empty()) {
    text += "counted " + std::to_string(uses.since);
    for (const auto& [name, value] : uses.counts) text += " " + name + "=" + std::to_string(value);
    text += "\n";
  }
  static_cast<void>(
      publish_file(version_path, std::string(use_log_name), std::as_bytes(std::span(text))));
}

}  // namespace kiln::cache
