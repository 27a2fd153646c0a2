// A bounded table of things that are slow to make: however many threads ask for one at once, one
// makes it and the others wait.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace kiln {

template <class Key, class Value, class Hash>
class SingleFlight {
 public:
  explicit SingleFlight(std::size_t capacity) : capacity_(capacity) {}

  struct Result {
    std::shared_ptr<const Value> value;
    bool made;  // by this call
  };

  // make() returns a shared_ptr<const Value> and runs outside the lock. If it throws, everyone who
  // waited gets the exception, and the next to ask tries again.
  template <class Make>
  Result get(const Key& key, const Make& make) {
    std::promise<std::shared_ptr<const Value>> promise;
    std::shared_future<std::shared_ptr<const Value>> future;
    bool mine = false;
    {
      std::lock_guard lock(mutex_);
      auto [slot, inserted] = slots_.try_emplace(key);
      if (inserted) {
        slot->second.future = promise.get_future().share();
        mine = true;
      }
      slot->second.last_use = ++clock_;
      future = slot->second.future;
      if (inserted) evict();
    }
    if (!mine) return {future.get(), false};
    try {
      promise.set_value(make());
    } catch (...) {
      {
        std::lock_guard lock(mutex_);
        slots_.erase(key);
      }
      promise.set_exception(std::current_exception());
    }
    return {future.get(), true};
  }

 private:
  struct Slot {
    std::shared_future<std::shared_ptr<const Value>> future;
    std::uint64_t last_use = 0;
  };

  // Forgets the least recently used; whoever holds the value keeps it. The newest stays.
  void evict() {
    while (slots_.size() > capacity_) {
      auto oldest = slots_.begin();
      for (auto slot = slots_.begin(); slot != slots_.end(); ++slot)
        if (slot->second.last_use < oldest->second.last_use) oldest = slot;
      slots_.erase(oldest);
    }
  }

  std::size_t capacity_;
  std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::unordered_map<Key, Slot, Hash> slots_;
};

}  // namespace kiln
