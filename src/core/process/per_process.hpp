// State of the process that outlives main and survives fork.
//
// Threads of the library may run while the process exits, and while another thread forks. So this
// state is never destroyed, and a forked child gets new values and locks: those of its parent may
// be half changed, or held by a thread that the child does not have. All locks and all values that
// are made on first use are of these classes. Static variables inside functions are not used for
// them: their guards stay locked in a child that is forked while one is initialized, and their
// destructors run while threads are at work. The dynamic loader's lock is apart: loader.hpp.
//
// The names of these locks and values. ProcessState::first() lists those in use; tests/process
// looks each one up here, so no line may end within a name, and holds it while it forks.
//   environment (core/config), log level, log (core/log), abandoned folders
//   (core/temporary_folder), chosen kernels, engines, engines' answers, laid tiles (engines/),
//   NVRTC, NVRTC functions, NVRTC compilations, host compiler (compile/),
//   CUDA driver, CUDA devices, host device, fiber stacks (device/), KILN_CACHE, kernel cache,
//   bundles, tuning, kernel sources, recorded plans, compile limit,
//   compile slots, loaded kernels, background threads (plan/), cuDNN settings, cuDNN callback,
//   cuDNN plans, cuDNN granted plans, cuDNN library (cudnn/)
// A handle's plans, a plan's texts and a cuDNN object's twin have members of OwnPerProcess and
// OwnOnce instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace kiln {

// A number that differs between a process and its forked children.
std::uint64_t fork_generation();

// The base of PerProcess and Once: a name, and a place in the list of states in use.
class ProcessState {
 public:
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  const char* name() const { return name_; }

  // For tests: the states in use, in no order.
  static ProcessState* first();
  ProcessState* next() const { return next_; }
  // For tests: takes the lock, as a thread does while it works on the state.
  std::unique_lock<std::mutex> hold() { return hold_(*this); }
  // For tests: makes the next use make the value again. The old value is not destroyed.
  void forget() {
    if (forget_ != nullptr) forget_(*this);
  }

 protected:
  using Hold = std::unique_lock<std::mutex> (*)(ProcessState&);
  using Forget = void (*)(ProcessState&);
  constexpr ProcessState(const char* name, Hold how_to_hold, Forget how_to_forget)
      : name_(name), hold_(how_to_hold), forget_(how_to_forget) {}
  ~ProcessState() = default;
  void enlist();  // once; a state without a name is not listed

 private:
  const char* name_;
  Hold hold_;
  Forget forget_;
  ProcessState* next_ = nullptr;
  std::atomic<bool> listed_{false};
};

// One T per process with a lock, made on first use. If a child's T depends on its parent's at the
// time of the fork, T defines of_child(parent's T).
template <class T>
class PerProcess : public ProcessState {
 public:
  constexpr explicit PerProcess(const char* name, Forget how_to_forget = nullptr)
      : ProcessState(
            name,
            [](ProcessState& state) {
              return std::unique_lock(static_cast<PerProcess&>(state).slot().mutex);
            },
            how_to_forget) {}

  // The T, locked for as long as this lives.
  class Locked {
   public:
    T* operator->() const { return &value_; }
    T& operator*() const { return value_; }
    std::unique_lock<std::mutex>& lock() { return lock_; }  // for condition variables

   private:
    friend class PerProcess;
    template <class Slot>
    explicit Locked(Slot& slot) : value_(slot.value), lock_(slot.mutex) {}
    T& value_;
    std::unique_lock<std::mutex> lock_;
  };
  Locked lock() { return Locked(slot()); }

 protected:
  // Destroys the T of an object that ends. A forked child does not touch its parent's T.
  void destroy() {
    Slot* const slot = slot_.load(std::memory_order_acquire);
    if (slot != nullptr && slot->generation == fork_generation()) delete slot;
  }

 private:
  struct Slot {
    std::uint64_t generation;
    Slot* before;  // the parent's slot, which leak checkers then find
    std::mutex mutex{};
    T value;
  };

  static T make(const Slot* parent) {
    if constexpr (requires { T::of_child(parent->value); })
      if (parent != nullptr) return T::of_child(parent->value);
    return T();
  }

  Slot& slot() {
    const std::uint64_t generation = fork_generation();
    Slot* slot = slot_.load(std::memory_order_acquire);
    if (slot != nullptr && slot->generation == generation) return *slot;
    auto fresh = std::unique_ptr<Slot>(new Slot{generation, slot, {}, make(slot)});
    if (!slot_.compare_exchange_strong(slot, fresh.get())) return *slot;
    enlist();
    return *fresh.release();
  }

  std::atomic<Slot*> slot_{nullptr};
};

struct OnlyLock {};

// A T made on first use, by one thread while others wait, and never destroyed. If making it throws,
// the next caller tries again. A forked child keeps its parent's T.
template <class T>
class Once : public PerProcess<OnlyLock> {
 public:
  constexpr explicit Once(const char* name)
      : PerProcess(name, [](ProcessState& state) { static_cast<Once&>(state).made_ = nullptr; }) {}

  // The T; make() returns its value.
  template <class Make>
  T& get(const Make& make) {
    return *get_if([&] { return std::make_unique<T>(make()); });
  }

  // The same; make() returns a std::unique_ptr<T>. If it is null, this call returns null, and the
  // next caller tries again.
  template <class Make>
  T* get_if(const Make& make) {
    if (T* const made = made_.load(std::memory_order_acquire)) return made;
    const Locked locked = lock();
    if (T* const made = made_.load(std::memory_order_acquire)) return made;
    T* const made = make().release();
    made_.store(made, std::memory_order_release);
    return made;
  }

 protected:
  void destroy() {
    delete made_.load(std::memory_order_acquire);
    PerProcess::destroy();
  }

 private:
  std::atomic<T*> made_{nullptr};
};

// The same as members of objects, which end with their owner.
template <class T>
class OwnPerProcess : public PerProcess<T> {
 public:
  OwnPerProcess() : PerProcess<T>(nullptr) {}
  ~OwnPerProcess() { this->destroy(); }
};
template <class T>
class OwnOnce : public Once<T> {
 public:
  OwnOnce() : Once<T>(nullptr) {}
  ~OwnOnce() { this->destroy(); }
};

}  // namespace kiln
