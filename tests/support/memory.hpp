// Results of the host device and of NVRTC that are remembered from earlier runs of the tests.
//
// KILN_TEST_MEMORY names a folder; state_of_results in .ci/setup.sh makes its name from what
// decides an answer but is no part of the question. Without it nothing is remembered. A question
// that a process asks twice is computed the second time, so that tests of repeated execution do
// execute.
//
// What a process was told from memory or added to it stands in a file below touched/ until the
// process says that it has passed. tests/run.sh removes the answers that are named in files left
// behind, so that a fault is not remembered, nor what led to it.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
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

// The folder of answers, one in a process. Thread-safe.
class Memory {
 public:
  static Memory& instance() {
    static Memory memory;
    return memory;
  }

  template <class Ask>
  std::vector<std::byte> answer(const Question& question, const Ask& ask) {
    if (folder_.empty()) return ask();
    const std::string name = question.name();
    const std::filesystem::path file = folder_ / name.substr(0, 2) / name;
    if (touch(name)) {
      if (auto answer = read(file)) return std::move(*answer);
    }
    std::vector<std::byte> answer = ask();
    write(file, answer);
    return answer;
  }

  // Says how much was remembered; if all tests of the process passed, that may stay.
  void close(bool passed) {
    std::lock_guard lock(mutex_);
    if (asked_.empty()) return;
    std::printf("%zu of %zu results remembered\n", remembered_, asked_.size());
    std::error_code ignored;
    if (passed) std::filesystem::remove(list_, ignored);
  }

 private:
  Memory() {
    const char* const folder = std::getenv("KILN_TEST_MEMORY");
    if (folder == nullptr || *folder == '\0') return;
    folder_ = folder;
    list_ = folder_ / "touched" / std::to_string(getpid());
  }

  // Whether the process has not asked for it before.
  bool touch(const std::string& name) {
    std::lock_guard lock(mutex_);
    if (!asked_.insert(name).second) return false;
    if (!touched_.is_open()) {
      std::filesystem::create_directories(list_.parent_path());
      touched_.open(list_, std::ios::app);
    }
    touched_ << name << std::endl;  // at once: the process may crash
    return true;
  }

  std::optional<std::vector<std::byte>> read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::nullopt;
    std::error_code error;
    std::vector<std::byte> answer(
        static_cast<std::size_t>(std::filesystem::file_size(file, error)));
    in.read(reinterpret_cast<char*>(answer.data()), static_cast<std::streamsize>(answer.size()));
    if (error || !in) return std::nullopt;
    // What was used last is kept longest (prune_memory in .ci/setup.sh).
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), error);
    std::lock_guard lock(mutex_);
    ++remembered_;
    return answer;
  }

  // On an error, the answer is not remembered.
  static void write(const std::filesystem::path& file, const std::vector<std::byte>& answer) {
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    const std::filesystem::path draft = file.string() + "." + std::to_string(getpid());
    std::ofstream out(draft, std::ios::binary);
    out.write(reinterpret_cast<const char*>(answer.data()),
              static_cast<std::streamsize>(answer.size()));
    out.close();
    if (out) std::filesystem::rename(draft, file, error);
    if (!out || error) std::filesystem::remove(draft, error);
  }

  std::filesystem::path folder_, list_;  // empty: nothing is remembered
  std::mutex mutex_;
  std::set<std::string> asked_;
  std::ofstream touched_;
  std::size_t remembered_ = 0;
};

// The remembered answer, or that of ask(), which is then remembered. Thread-safe.
template <class Ask>
std::vector<std::byte> remembered(const Question& question, const Ask& ask) {
  return Memory::instance().answer(question, ask);
}

}  // namespace kiln_test
