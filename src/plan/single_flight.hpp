// A bounded table of values that are slow to make. If several threads ask for the same value at
// once, one makes it and the others wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/process/per_process.hpp"

namespace kiln {

template <class Key, class Value, class Hash>
class SingleFlight {
 public:
  // `capacity` gives the number of values that are kept, at least 1; the same number each time.
  constexpr SingleFlight(const char* name, std::size_t (*capacity)())
      : capacity_(capacity), table_(name) {}

  struct Result {
    std::shared_ptr<const Value> value;
    bool made;  // whether this call made the value
  };

  // The value, if it has been made. Never waits.
  std::shared_ptr<const Value> find(const Key& key) {
    const auto table = table_.lock();
    const auto slot = table->slots.find(key);
    if (slot == table->slots.end() ||
        slot->second.future.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return nullptr;
    slot->second.last_use = ++table->clock;
    return slot->second.future.get();
  }

  // Adds a value that the caller has made, unless the key has a value or one is being made.
  void add(const Key& key, std::shared_ptr<const Value> value) {
    std::promise<std::shared_ptr<const Value>> promise;
    promise.set_value(std::move(value));
    Evicted evicted;
    const auto table = table_.lock();
    auto [slot, inserted] = table->slots.try_emplace(key);
    if (!inserted) return;
    slot->second = {promise.get_future().share(), ++table->clock};
    evict(table->slots, evicted);
  }

  // make() returns a shared_ptr<const Value> and runs outside the lock. If it throws, all waiting
  // threads get the exception, and the next caller tries again.
  template <class Make>
  Result get(const Key& key, const Make& make) {
    std::promise<std::shared_ptr<const Value>> promise;
    std::shared_future<std::shared_ptr<const Value>> future;
    bool mine = false;
    {
      Evicted evicted;
      const auto table = table_.lock();
      auto [slot, inserted] = table->slots.try_emplace(key);
      if (inserted) {
        slot->second.future = promise.get_future().share();
        mine = true;
      }
      slot->second.last_use = ++table->clock;
      future = slot->second.future;
      if (inserted) evict(table->slots, evicted);
    }
    if (!mine) return {future.get(), false};
    try {
      promise.set_value(make());
    } catch (...) {
      table_.lock()->slots.erase(key);
      promise.set_exception(std::current_exception());
    }
    return {future.get(), true};
  }

 private:
  struct Slot {
    std::shared_future<std::shared_ptr<const Value>> future;
    std::uint64_t last_use = 0;
  };

  using Slots = std::unordered_map<Key, Slot, Hash>;
  struct Table {
    std::uint64_t clock = 0;
    Slots slots;
  };

  // Values that are destroyed after the lock is released, because that may take long: unloading a
  // kernel may wait for the GPU.
  using Evicted = std::vector<Slot>;

  // Moves the least recently used entries to `evicted`, but never the newest. Holders of a value
  // keep it.
  void evict(Slots& slots, Evicted& evicted) const {
    while (slots.size() > capacity_()) {
      auto oldest = slots.begin();
      for (auto slot = slots.begin(); slot != slots.end(); ++slot)
        if (slot->second.last_use < oldest->second.last_use) oldest = slot;
      evicted.push_back(std::move(oldest->second));
      slots.erase(oldest);
    }
  }

  std::size_t (*capacity_)();
  PerProcess<Table> table_;
};

}  // namespace kiln
