#include "device/host/cluster_runner.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <utility>

#include "core/error.hpp"

namespace kiln::host {
namespace {

constexpr unsigned warp_threads = 32;

// The initial-exec model allocates no memory on a thread's first access.
[[gnu::tls_model("initial-exec")]] constinit thread_local Context* current_context = nullptr;

// The orders of threads in a round: forward, backward, and several shuffled ones. Their number is
// prime, so that a loop with two or three barriers meets each of its phases in every order.
constexpr std::size_t order_count = 5;

std::vector<std::vector<std::uint32_t>> make_orders(std::size_t threads) {
  std::vector<std::vector<std::uint32_t>> orders(order_count, std::vector<std::uint32_t>(threads));
  std::minstd_rand random(20140);
  for (std::size_t i = 0; i < order_count; ++i) {
    auto& order = orders[i];
    std::iota(order.begin(), order.end(), 0u);
    if (i == 1) std::ranges::reverse(order);
    if (i < 2) continue;
    for (std::size_t left = threads; left > 1; --left)  // std::shuffle differs between libraries
      std::swap(order[left - 1], order[random() % left]);
  }
  return orders;
}

}  // namespace

bool ClusterRunner::all(Group group, Wait wait) {
  return std::ranges::all_of(group, [&](const Thread& thread) { return thread.wait == wait; });
}

void ClusterRunner::release(Group group) {
  for (Thread& thread : group) thread.wait = Wait::none;
}

ClusterRunner::ClusterRunner(const Launch& launch, const FiberStacks& stacks)
    : Context{},
      launch_(launch),
      stacks_(stacks),
      threads_(std::size_t{launch.block_threads} * launch.shape.cluster),
      exchanges_((launch.block_threads + warp_threads - 1) / warp_threads * launch.shape.cluster),
      orders_(make_orders(threads_.size())) {
  for (unsigned block = 0; block < launch.shape.cluster; ++block)
    memories_.emplace_back(launch.shape.shared_memory);
  transactions_.resize(launch.shape.cluster);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.runner = this;
    thread.block = static_cast<unsigned>(i / launch.block_threads);
    thread.index = static_cast<unsigned>(i % launch.block_threads);
    const auto& size = launch.shape.block;
    thread.position = {thread.index % size[0], thread.index / size[0] % size[1],
                       thread.index / size[0] / size[1]};
  }
  std::ranges::copy(launch.shape.grid, grid_size);
  cluster_size = launch.shape.cluster;
  parameters = launch.parameters;
  leading_.resize(launch.shape.cluster);
  fill_table();
  fill_bulk_table();
}

void ClusterRunner::begin(std::uint64_t cluster) {
  const auto& shape = launch_.shape;
  constexpr Ahead turns[] = {Ahead::first_warp, Ahead::none, Ahead::last_warp};
  ahead_ = turns[cluster % std::size(turns)];
  const std::uint64_t row = shape.grid[0] / shape.cluster;  // clusters
  first_block_x_ = cluster % row * shape.cluster;
  block_index[1] = static_cast<unsigned>(cluster / row % shape.grid[1]);
  block_index[2] = static_cast<unsigned>(cluster / row / shape.grid[1]);
  for (BlockMemory& memory : memories_) memory.begin();
  for (Transactions& transactions : transactions_) transactions.begin();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.wait = Wait::none;
    thread.open_group = 0;
    thread.copies.clear();
    thread.open_stores = 0;
    thread.stores.clear();
    thread.fiber.start(stacks_[i], run_fiber, &thread);
  }
}

Context* ClusterRunner::current() { return current_context; }

void ClusterRunner::run(std::uint64_t cluster) {
  current_context = this;
  begin(cluster);
  for (std::uint64_t round = cluster;; ++round) {
    choose_leading();
    for (const std::uint32_t i : orders_[round % order_count])
      if (may_run(threads_[i])) run_thread(threads_[i]);
    if (all_exited()) return check_exits();
    const bool released = release_waiting();
    if (!released && std::ranges::none_of(threads_, can_run)) report_deadlock();
  }
}

bool ClusterRunner::can_run(const Thread& thread) { return thread.wait == Wait::none; }

// With one warp ahead, chooses in each block the first warp that can run; the others have to wait
// for it.
void ClusterRunner::choose_leading() {
  if (ahead_ == Ahead::none) return;
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) {
    const Group group = block_group(block);
    const auto number = [&](auto at) { return static_cast<std::size_t>(at) / warp_threads; };
    if (ahead_ == Ahead::first_warp)
      leading_[block] = number(std::ranges::find_if(group, can_run) - group.begin());
    else
      leading_[block] =
          number(group.rend() - std::find_if(group.rbegin(), group.rend(), can_run) - 1);
  }
}

bool ClusterRunner::may_run(const Thread& thread) const {
  return can_run(thread) &&
         (ahead_ == Ahead::none || thread.index / warp_threads == leading_[thread.block]);
}

void ClusterRunner::run_fiber(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  thread.runner->launch_.entry.run(thread.runner->launch_.parameters);
  thread.wait = Wait::exited;
}

void ClusterRunner::run_thread(Thread& thread) {
  running_ = &thread;
  std::ranges::copy(thread.position, thread_index);
  block_index[0] = static_cast<unsigned>(first_block_x_ + thread.block);
  cluster_rank = thread.block;
  thread.fiber.resume();
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_EXECUTION_FAILED) throw;
    report(thread.block, cat("thread ", thread.index, ": ", error.what()));
  }
}

ClusterRunner::Group ClusterRunner::block_group(unsigned block) {
  return Group(threads_).subspan(std::size_t{block} * launch_.block_threads, launch_.block_threads);
}

// Resumes every group whose threads have all arrived at the same operation; false if there is none.
bool ClusterRunner::release_waiting() {
  bool released = false;
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) {
    const Group group = block_group(block);
    if (all(group, Wait::block_barrier)) {
      release(group);
      released = true;
    } else if (release_warps(group)) {
      released = true;
    }
    if (release_named(group)) released = true;
    if (release_mbarriers(block)) released = true;
  }
  if (all(threads_, Wait::cluster_barrier)) {
    release(threads_);
    released = true;
  }
  return released;
}

bool ClusterRunner::release_warps(Group block) {
  bool released = false;
  const std::size_t warps = (block.size() + warp_threads - 1) / warp_threads;
  for (std::size_t i = 0; i < warps; ++i) {
    const std::size_t first = (ahead_ == Ahead::last_warp ? warps - 1 - i : i) * warp_threads;
    const Group warp =
        block.subspan(first, std::min<std::size_t>(warp_threads, block.size() - first));
    if (all(warp, Wait::warp_shuffle)) {
      // Lanes that the warp does not have offer an arbitrary value, on which no kernel may rely.
      std::array<unsigned long long, warp_threads> offered;
      offered.fill(~0ull);
      std::ranges::transform(warp, offered.begin(), &Thread::value);
      for (Thread& thread : warp) thread.value = offered[thread.source_lane];
    } else if (all(warp, Wait::warp_exchange)) {
      exchange(warp);
    } else if (!all(warp, Wait::warp_barrier)) {
      continue;
    }
    release(warp);
    released = true;
    if (ahead_ != Ahead::none) break;
  }
  return released;
}

ClusterRunner::Exchange& ClusterRunner::exchange_of(const Thread& thread) {
  const std::size_t warps = (launch_.block_threads + warp_threads - 1) / warp_threads;
  return exchanges_[thread.block * warps + thread.index / warp_threads];
}

// Copies the values that lanes offer, because they are on the lanes' stacks, which change when
// lanes continue.
void ClusterRunner::exchange(Group warp) {
  Exchange& all = exchange_of(warp.front());
  all.bytes.fill(std::byte{0xff});
  std::byte* to = all.bytes.data();
  for (const Thread& thread : warp) {
    std::memcpy(to, thread.offered, thread.offered_bytes);
    to += thread.offered_bytes;
  }
}

// Whether all blocks have exited. Also ends the shared memory of blocks that have.
bool ClusterRunner::all_exited() {
  bool every_block = true;
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) {
    if (!all(block_group(block), Wait::exited)) {
      every_block = false;
    } else if (launch_.shape.cluster > 1) {
      memories_[block].end();
    }
  }
  return every_block;
}

void ClusterRunner::report_deadlock() {
  constexpr std::array<std::pair<Wait, const char*>, 8> places{{
      {Wait::block_barrier, " wait at block_barrier"},
      {Wait::warp_barrier, " wait at warp_barrier"},
      {Wait::warp_shuffle, " wait at a warp shuffle"},
      {Wait::warp_exchange, " wait at a warp exchange"},
      {Wait::cluster_barrier, " wait at cluster_barrier"},
      {Wait::named_barrier, " wait at a named barrier"},
      {Wait::mbarrier, " wait at an mbarrier"},
      {Wait::exited, " have exited"},
  }};
  // The first block that waits for ever, preferably one that waits for more than its cluster.
  unsigned block = 0;
  while (all(block_group(block), Wait::exited)) ++block;
  for (unsigned other = block; other < launch_.shape.cluster; ++other) {
    const Group group = block_group(other);
    if (all(group, Wait::exited) || all(group, Wait::cluster_barrier)) continue;
    block = other;
    break;
  }
  std::vector<std::string> counts;
  for (const auto& [wait, words] : places) {
    const auto count = std::ranges::count(block_group(block), wait, &Thread::wait);
    if (count > 0) counts.push_back(cat(count, words));
  }
  report(block, cat("of ", launch_.block_threads, " threads ", join(counts, ", "),
                    "; expected all of them at one barrier", transactions_[block].missing()));
}

void ClusterRunner::report(unsigned block, std::string_view what) const {
  fail(KILN_STATUS_EXECUTION_FAILED, "kernel ", launch_.kernel, ", block (", first_block_x_ + block,
       ", ", block_index[1], ", ", block_index[2], "): ", what);
}

void ClusterRunner::wait_for(Wait wait) {
  running_->wait = wait;
  running_->fiber.suspend();
}

void ClusterRunner::fill_table() {
  block_barrier = [](Context* context) {
    static_cast<ClusterRunner*>(context)->wait_for(Wait::block_barrier);
  };
  warp_barrier = [](Context* context) {
    static_cast<ClusterRunner*>(context)->wait_for(Wait::warp_barrier);
  };
  cluster_barrier = [](Context* context) {
    static_cast<ClusterRunner*>(context)->wait_for(Wait::cluster_barrier);
  };
  warp_shuffle = [](Context* context, unsigned long long value, unsigned source_lane) {
    auto& runner = *static_cast<ClusterRunner*>(context);
    Thread& thread = *runner.running_;
    thread.value = value;
    thread.source_lane = source_lane;
    runner.wait_for(Wait::warp_shuffle);
    return thread.value;
  };
  warp_exchange = [](Context* context, const void* mine, unsigned bytes) -> const void* {
    auto& runner = *static_cast<ClusterRunner*>(context);
    Thread& thread = *runner.running_;
    thread.offered = mine;
    thread.offered_bytes = std::min(bytes, most_exchanged);
    runner.wait_for(Wait::warp_exchange);
    return runner.exchange_of(thread).bytes.data();
  };
  lane = [](Context* context) {
    return static_cast<ClusterRunner*>(context)->running_->index % warp_threads;
  };
  shared_array = [](Context* context, unsigned offset, unsigned bytes) {
    return checked(context, [&](ClusterRunner& runner) {
      return runner.memories_[runner.running_->block].array(offset, bytes);
    });
  };
  cluster_shared = [](Context* context, const void* mine, unsigned rank) {
    return checked(context, [&](ClusterRunner& runner) {
      if (rank >= runner.memories_.size())
        fail(KILN_STATUS_EXECUTION_FAILED, "cluster_shared asks for block ", rank,
             " of a cluster of ", runner.memories_.size());
      return runner.memories_[runner.running_->block].same_place_in(runner.memories_[rank], mine);
    });
  };
  async_copy = [](Context* context, void* shared, const void* global, unsigned bytes, bool valid) {
    checked(context, [&](ClusterRunner& runner) {
      Thread& thread = *runner.running_;
      if (!runner.memories_[thread.block].contains(shared, bytes))
        fail(KILN_STATUS_EXECUTION_FAILED, "async_copy of ", bytes,
             " bytes to an address outside the shared arrays of its block");
      if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 ||
          (valid && reinterpret_cast<std::uintptr_t>(global) % bytes != 0))
        fail(KILN_STATUS_EXECUTION_FAILED, "async_copy of ", bytes,
             " bytes with an address that is not a multiple of ", bytes);
      AsyncCopy copy{shared, bytes, thread.open_group, {}};
      if (valid) std::memcpy(copy.data, global, bytes);  // now, so that a bad address faults here
      std::memset(shared, 0xff, bytes);
      thread.copies.push_back(copy);
    });
  };
  async_commit = [](Context* context) {
    ++static_cast<ClusterRunner*>(context)->running_->open_group;
  };
  async_wait = [](Context* context, unsigned newest_groups_left) {
    Thread& thread = *static_cast<ClusterRunner*>(context)->running_;
    const auto first_left = std::ranges::find_if(thread.copies, [&](const AsyncCopy& copy) {
      return copy.group + newest_groups_left >= thread.open_group;
    });
    std::for_each(thread.copies.begin(), first_left, [](const AsyncCopy& copy) {
      std::memcpy(copy.destination, copy.data, copy.bytes);
    });
    thread.copies.erase(thread.copies.begin(), first_left);
  };
}

}  // namespace kiln::host
