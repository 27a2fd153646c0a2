// Runs the blocks of one cluster on one operating-system thread, a fiber for each CUDA thread.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/host/block_memory.hpp"
#include "device/host/fiber.hpp"
#include "device/host/tensor_map.hpp"
#include "device/host/transactions.hpp"
#include "host/runtime.h"

namespace kiln::host {

// The properties that all blocks of a launch share.
struct Launch {
  std::string_view kernel;  // for diagnostics
  const KernelEntry& entry;
  const LaunchShape& shape;
  const void* parameters;
  unsigned block_threads;  // product of shape.block
};

// The fibers run one at a time, each until it waits for others or exits. Their order changes from
// one round to the next, so that a kernel without a necessary barrier, which happens to be right in
// one order, is wrong in another. In some clusters, warps advance together. In others, a warp runs
// only if no warp before it can, so that one warp gets as far ahead as barriers allow. The order
// is the same in every process.
class ClusterRunner : private Context {
 public:
  // stacks: at least block_threads * shape.cluster stacks.
  ClusterRunner(const Launch& launch, const FiberStacks& stacks);

  // Clusters are numbered along x, then y, then z. Throws EXECUTION_FAILED with the kernel, the
  // block and what is wrong, or ALLOC_FAILED; the runner and its stacks are then of no further use.
  void run(std::uint64_t cluster);

  // The context of the calling thread, which kernels ask for.
  static CurrentContext current;

 private:
  // What a thread waits for.
  enum class Wait : std::uint8_t {
    none,
    block_barrier,
    warp_barrier,
    warp_shuffle,
    warp_exchange,
    cluster_barrier,
    named_barrier,
    mbarrier,
    exited
  };

  struct AsyncCopy {
    void* destination;
    std::uint32_t bytes;
    std::uint32_t group;
    unsigned char data[16];
  };

  struct BulkStore {
    const void* map;
    const void* shared;
    std::vector<int> at;
    std::uint32_t group;
  };

  struct Thread {
    ClusterRunner* runner;
    Fiber fiber;
    unsigned block;    // within the cluster
    unsigned index;    // within the block, x fastest
    std::size_t warp;  // within the cluster
    std::array<unsigned, 3> position;
    Wait wait;                 // set_wait changes it
    unsigned source_lane;      // of a shuffle
    unsigned long long value;  // offered to a shuffle, then received from it
    const void* offered;       // of an exchange
    unsigned offered_bytes;
    std::uint32_t open_group;       // the group of async copies not yet committed
    std::vector<AsyncCopy> copies;  // issued and not landed, oldest first
    unsigned barrier;               // a named one's number
    void* mbarrier;                 // waited for, and the parity of its phase
    unsigned parity;
    std::uint32_t open_stores;      // the group of bulk stores not yet committed
    std::vector<BulkStore> stores;  // started and not waited for, oldest first
  };

  struct alignas(16) Exchange {
    std::array<std::byte, std::size_t{32} * most_exchanged> bytes;
  };

  static constexpr unsigned named_barriers = 16;  // of a block
  // The threads that wait at one of them.
  struct NamedBarrier {
    unsigned waiting = 0;
    unsigned expected = 0;  // by the first of them
    bool differ = false;    // another of them expects other threads
  };

  // Of a warp's threads or a block's, how many wait for each thing.
  using Counts = std::array<std::uint32_t, static_cast<std::size_t>(Wait::exited) + 1>;
  static std::uint32_t number(const Counts& counts, Wait wait) {
    return counts[static_cast<std::size_t>(wait)];
  }
  void set_wait(Thread& thread, Wait wait);
  bool block_waits(unsigned block, Wait wait) const;
  bool cluster_waits(Wait wait) const;
  bool any_can_run() const;

  // Threads that wait for each other: a warp, a block, the cluster.
  using Group = std::span<Thread>;
  void release(Group group);

  void begin(std::uint64_t cluster);
  static bool can_run(const Thread& thread);
  void choose_leading();
  std::span<const std::uint32_t> turns_of(std::uint64_t round) const;
  bool may_run(const Thread& thread) const;
  void run_thread(Thread& thread);
  bool release_waiting();
  bool release_warps(unsigned block);
  bool release_named(unsigned block);
  bool release_mbarriers(unsigned block);
  void exchange(Group warp);
  bool all_exited();
  [[noreturn]] void report_deadlock();
  [[noreturn]] void report(unsigned block, std::string_view what) const;
  Group block_group(unsigned block);
  Group warp_group(unsigned block, std::size_t warp);  // a warp of the block
  void wait_for(Wait wait);

  // Runs `work` for the running thread. If it throws, the fiber is suspended for good and the
  // launch fails, because an exception must not cross the kernel's frames.
  template <class Work>
  static auto checked(Context* context, Work work) {
    ClusterRunner& runner = *static_cast<ClusterRunner*>(context);
    try {
      return work(runner);
    } catch (...) {
      runner.failure_ = std::current_exception();
    }
    for (;;) runner.running_->fiber.suspend();
  }
  static void run_fiber(void* thread);
  void check_exits();
  void fill_table();
  void fill_bulk_table();  // cluster_runner_bulk.cpp

  const Launch& launch_;
  const FiberStacks& stacks_;
  std::vector<BlockMemory> memories_;  // one a block
  std::vector<Transactions> transactions_;
  std::vector<Thread> threads_;  // block by block, x fastest
  const std::size_t block_warps_;
  std::vector<Exchange> exchanges_;  // one a warp, block by block
  // Kept up to date, for looking at every thread after each round takes longer than running them.
  std::vector<Counts> warp_counts_, block_counts_;
  std::vector<NamedBarrier> named_;  // block by block
  std::vector<std::vector<std::uint32_t>> orders_;
  // The same orders, warp by warp, where the cluster is one block.
  std::vector<std::vector<std::uint32_t>> warp_orders_;
  std::uint64_t first_block_x_ = 0;
  enum class Ahead : std::uint8_t { first_warp, last_warp, none };
  Ahead ahead_ = Ahead::none;
  std::vector<std::size_t> leading_;  // warp, of each block; block_warps_: none can run
  Thread* running_ = nullptr;
  std::exception_ptr failure_;  // of the running thread
};

}  // namespace kiln::host
