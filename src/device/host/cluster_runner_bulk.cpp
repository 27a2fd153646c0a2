// Synchronization of a block's threads with each other and with the copy engine, apart from the
// block's own barrier: named barriers, mbarriers, bulk copies.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "device/host/cluster_runner.hpp"

namespace kiln::host {
namespace {

// Checks what the copy engine requires: the box is within one array and aligned, because the
// swizzle depends on its address.
void check_place(const BlockMemory& memory, const void* shared, std::size_t bytes,
                 std::size_t alignment) {
  if (!memory.contains(shared, bytes))
    fail(KILN_STATUS_EXECUTION_FAILED, "a bulk copy of ", bytes,
         " bytes to or from an address outside the shared arrays of its block");
  if (reinterpret_cast<std::uintptr_t>(shared) % alignment != 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "a bulk copy's shared memory is misaligned; expected a ",
         "multiple of ", alignment, " bytes");
}

}  // namespace

bool ClusterRunner::release_named(unsigned block) {
  if (number(block_counts_[block], Wait::named_barrier) == 0) return false;
  bool released = false;
  for (unsigned name = 0; name < named_barriers; ++name) {
    NamedBarrier& barrier = named_[block * named_barriers + name];
    if (barrier.waiting == 0) continue;
    if (barrier.waiting > barrier.expected || barrier.differ)
      report(block, cat(barrier.waiting, " threads wait at named barrier ", name,
                        ", which one of them uses with ", barrier.expected, " threads"));
    if (barrier.waiting < barrier.expected) continue;
    for (Thread& thread : block_group(block))
      if (thread.wait == Wait::named_barrier && thread.barrier == name)
        set_wait(thread, Wait::none);
    barrier = {};
    released = true;
  }
  return released;
}

bool ClusterRunner::release_mbarriers(unsigned block) {
  if (number(block_counts_[block], Wait::mbarrier) == 0) return false;
  bool released = false;
  for (std::size_t warp = 0; warp < block_warps_; ++warp) {
    if (number(warp_counts_[block * block_warps_ + warp], Wait::mbarrier) == 0) continue;
    for (Thread& thread : warp_group(block, warp)) {
      if (thread.wait != Wait::mbarrier) continue;
      try {
        if (!transactions_[block].wait(thread.mbarrier, thread.parity)) continue;
      } catch (const Error& error) {
        report(block, cat("thread ", thread.index, ": ", error.what()));
      }
      set_wait(thread, Wait::none);
      released = true;
    }
  }
  return released;
}

void ClusterRunner::check_exits() {
  for (const Thread& thread : threads_)
    if (!thread.stores.empty())
      report(thread.block, cat("thread ", thread.index, " ends while ", thread.stores.size(),
                               " of its bulk stores read shared memory"));
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) try {
      transactions_[block].end();
    } catch (const Error& error) {
      report(block, error.what());
    }
}

void ClusterRunner::fill_bulk_table() {
  named_barrier = [](Context* context, unsigned name, unsigned threads) {
    checked(context, [&](ClusterRunner&) {
      if (name == 0 || name >= named_barriers)
        fail(KILN_STATUS_EXECUTION_FAILED, "named barrier ", name, "; expected 1 to ",
             named_barriers - 1);
    });
    auto& runner = *static_cast<ClusterRunner*>(context);
    Thread& thread = *runner.running_;
    thread.barrier = name;
    NamedBarrier& barrier = runner.named_[thread.block * named_barriers + name];
    if (barrier.waiting == 0) barrier.expected = threads;
    barrier.differ = barrier.differ || threads != barrier.expected;
    ++barrier.waiting;
    runner.wait_for(Wait::named_barrier);
  };
  mbarrier_init = [](Context* context, void* at, unsigned arrivals) {
    checked(context, [&](ClusterRunner& runner) {
      const unsigned block = runner.running_->block;
      if (!runner.memories_[block].contains(at, 8) || reinterpret_cast<std::uintptr_t>(at) % 8 != 0)
        fail(KILN_STATUS_EXECUTION_FAILED,
             "an mbarrier that is not 8 aligned bytes of its block's shared arrays");
      runner.transactions_[block].init(at, arrivals);
    });
  };
  mbarrier_arrive = [](Context* context, void* at, unsigned announced_bytes) {
    checked(context, [&](ClusterRunner& runner) {
      runner.transactions_[runner.running_->block].arrive(at, announced_bytes);
    });
  };
  mbarrier_wait = [](Context* context, void* at, unsigned parity) {
    auto& runner = *static_cast<ClusterRunner*>(context);
    Thread& thread = *runner.running_;
    const bool passed = checked(context, [&](ClusterRunner&) {
      return runner.transactions_[thread.block].wait(at, parity);
    });
    if (passed) return;
    thread.mbarrier = at;
    thread.parity = parity;
    runner.wait_for(Wait::mbarrier);
  };
  bulk_load = [](Context* context, void* shared, const void* map, void* mbarrier, int rank,
                 const int* at, const int* tap) {
    checked(context, [&](ClusterRunner& runner) {
      const unsigned block = runner.running_->block;
      const BoxPlace place{{at, static_cast<std::size_t>(rank)}, tap};
      const std::size_t bytes = box_bytes(map, place, tap != nullptr);
      check_place(runner.memories_[block], shared, bytes, shared_alignment(map));
      runner.transactions_[block].load(mbarrier, shared, read_box(map, place, shared));
    });
  };
  bulk_store = [](Context* context, const void* map, const void* shared, int rank, const int* at,
                  bool im2col) {
    checked(context, [&](ClusterRunner& runner) {
      Thread& thread = *runner.running_;
      const std::size_t dimensions = static_cast<std::size_t>(rank);
      const std::size_t bytes = box_bytes(map, {{at, dimensions}}, im2col);
      check_place(runner.memories_[thread.block], shared, bytes, shared_alignment(map));
      thread.stores.push_back({map, shared, {at, at + dimensions}, thread.open_stores});
    });
  };
  bulk_commit = [](Context* context) {
    ++static_cast<ClusterRunner*>(context)->running_->open_stores;
  };
  bulk_wait = [](Context* context, unsigned newest_groups_left) {
    Thread& thread = *static_cast<ClusterRunner*>(context)->running_;
    const auto first_left = std::ranges::find_if(thread.stores, [&](const BulkStore& store) {
      return store.group + newest_groups_left >= thread.open_stores;
    });
    std::for_each(thread.stores.begin(), first_left,
                  [](const BulkStore& store) { write_box(store.map, {store.at}, store.shared); });
    thread.stores.erase(thread.stores.begin(), first_left);
  };
}

}  // namespace kiln::host
