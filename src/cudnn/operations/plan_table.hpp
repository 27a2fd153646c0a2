// Plans by a key of everything that decides on them. They are kept as long as the process, because
// one of their kernels may be running, so their number is bounded.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

namespace kiln::cudnn {

// Appends the bytes of a value that has no padding to a key.
template <class Value>
void append(std::string& key, const Value& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Entry>
class PlanTable {
 public:
  // The entry of a key, made if there is none; null if the table is full.
  Entry* find_or_add(const std::string& key) {
    constexpr std::size_t capacity = 4096;
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second.get();
    if (entries_.size() >= capacity) return nullptr;
    return entries_.emplace(key, std::make_unique<Entry>()).first->second.get();
  }

 private:
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;
};

}  // namespace kiln::cudnn
