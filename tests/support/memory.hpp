// Results of the host device and of NVRTC that are remembered from earlier runs of the tests.
//
// KILN_TEST_MEMORY names a folder; tests/run.sh derives its name from the sources that decide an
// answer but are not part of the key. Without it nothing is remembered. A question that a process
// asks twice is computed the second time, so that tests of repeated execution do execute.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cache/hash.hpp"

namespace kiln_test {

// Collects the bytes of a question.
class Question {
 public:
  template <class Value>
  Question& add(const Value& value) {
    static_assert(std::has_unique_object_representations_v<Value> ||
                  std::is_floating_point_v<Value>);
    return add(std::as_bytes(std::span(&value, 1)));
  }
  Question& add(const std::string& text) { return add(std::as_bytes(std::span(text))); }
  Question& add(std::span<const std::byte> bytes) {
    const std::size_t size = bytes.size();
    const auto length = std::as_bytes(std::span(&size, 1));
    bytes_.insert(bytes_.end(), length.begin(), length.end());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::string name() const { return kiln::cache::hash128_hex(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// The remembered answer, or that of ask(), which is then remembered. Thread-safe.
template <class Ask>
std::vector<std::byte> remembered(const Question& question, const Ask& ask) {
  namespace fs = std::filesystem;
  static const char* const folder = std::getenv("KILN_TEST_MEMORY");
  if (folder == nullptr || *folder == '\0') return ask();
  static std::mutex mutex;
  static std::set<std::string> asked;
  const std::string name = question.name();
  const fs::path file = fs::path(folder) / name.substr(0, 2) / name;
  bool first;
  {
    std::lock_guard lock(mutex);
    first = asked.insert(name).second;
  }
  if (std::ifstream in(file, std::ios::binary); first && in) {
    std::vector<std::byte> answer(static_cast<std::size_t>(fs::file_size(file)));
    in.read(reinterpret_cast<char*>(answer.data()), static_cast<std::streamsize>(answer.size()));
    if (in) return answer;
  }
  const std::vector<std::byte> answer = ask();
  fs::create_directories(file.parent_path());
  const fs::path draft = file.string() + "." + std::to_string(getpid());
  {
    std::ofstream out(draft, std::ios::binary);
    out.write(reinterpret_cast<const char*>(answer.data()),
              static_cast<std::streamsize>(answer.size()));
  }
  std::error_code ignored;  // on an error, the answer is not remembered
  fs::rename(draft, file, ignored);
  return answer;
}

}  // namespace kiln_test
