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

void ClusterRunner::set_wait(Thread& thread, Wait wait) {
  for (Counts* counts : {&warp_counts_[thread.warp], &block_counts_[thread.block]}) {
    --(*counts)[static_cast<std::size_t>(thread.wait)];
    ++(*counts)[static_cast<std::size_t>(wait)];
  }
  thread.wait = wait;
}

bool ClusterRunner::block_waits(unsigned block, Wait wait) const {
  return number(block_counts_[block], wait) == launch_.block_threads;
}

bool ClusterRunner::cluster_waits(Wait wait) const {
  for (unsigned block = 0; block < launch_.shape.cluster; ++block)
    if (!block_waits(block, wait)) return false;
  return true;
}

bool ClusterRunner::any_can_run() const {
  return std::ranges::any_of(block_counts_,
                             [](const Counts& counts) { return number(counts, Wait::none) > 0; });
}

void ClusterRunner::release(Group group) {
  for (Thread& thread : group) set_wait(thread, Wait::none);
}

ClusterRunner::ClusterRunner(const Launch& launch, const FiberStacks& stacks)
    : Context{},
      launch_(launch),
      stacks_(stacks),
      threads_(std::size_t{launch.block_threads} * launch.shape.cluster),
      block_warps_((launch.block_threads + warp_threads - 1) / warp_threads),
      exchanges_(block_warps_ * launch.shape.cluster),
      warp_counts_(block_warps_ * launch.shape.cluster),
      block_counts_(launch.shape.cluster),
      named_(std::size_t{named_barriers} * launch.shape.cluster),
      orders_(make_orders(threads_.size())) {
  for (unsigned block = 0; block < launch.shape.cluster; ++block)
    memories_.emplace_back(launch.shape.shared_memory);
  transactions_.resize(launch.shape.cluster);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.runner = this;
    thread.block = static_cast<unsigned>(i / launch.block_threads);
    thread.index = static_cast<unsigned>(i % launch.block_threads);
    thread.warp = thread.block * block_warps_ + thread.index / warp_threads;
    const auto& size = launch.shape.block;
    thread.position = {thread.index % size[0], thread.index / size[0] % size[1],
                       thread.index / size[0] / size[1]};
  }
  std::ranges::copy(launch.shape.grid, grid_size);
  cluster_size = launch.shape.cluster;
  parameters = launch.parameters;
  leading_.resize(launch.shape.cluster);
  if (launch.shape.cluster == 1) {
    warp_orders_ = orders_;
    for (auto& order : warp_orders_)
      std::ranges::stable_sort(order, {}, [](std::uint32_t i) { return i / warp_threads; });
  }
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
  std::ranges::fill(named_, NamedBarrier{});
  std::ranges::fill(warp_counts_, Counts{});
  std::ranges::fill(block_counts_, Counts{});
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.wait = Wait::none;
    ++warp_counts_[thread.warp][static_cast<std::size_t>(Wait::none)];
    ++block_counts_[thread.block][static_cast<std::size_t>(Wait::none)];
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
    for (const std::uint32_t i : turns_of(round))
      if (may_run(threads_[i])) run_thread(threads_[i]);
    if (all_exited()) return check_exits();
    const bool released = release_waiting();
    if (!released && !any_can_run()) report_deadlock();
  }
}

bool ClusterRunner::can_run(const Thread& thread) { return thread.wait == Wait::none; }

// With one warp ahead, chooses in each block the first warp that can run; the others have to wait
// for it.
void ClusterRunner::choose_leading() {
  if (ahead_ == Ahead::none) return;
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) {
    const auto warps = std::span(warp_counts_).subspan(block * block_warps_, block_warps_);
    const auto ready = [](const Counts& counts) { return number(counts, Wait::none) > 0; };
    leading_[block] = block_warps_;
    if (ahead_ == Ahead::first_warp) {
      leading_[block] =
          static_cast<std::size_t>(std::ranges::find_if(warps, ready) - warps.begin());
    } else if (const auto last = std::find_if(warps.rbegin(), warps.rend(), ready);
               last != warps.rend()) {
      leading_[block] = static_cast<std::size_t>(warps.rend() - last - 1);
    }
  }
}

// The threads that a round looks at, in its order.
std::span<const std::uint32_t> ClusterRunner::turns_of(std::uint64_t round) const {
  if (ahead_ == Ahead::none || launch_.shape.cluster > 1) return orders_[round % order_count];
  const std::span<const std::uint32_t> order = warp_orders_[round % order_count];
  const std::size_t first = std::min(leading_[0] * warp_threads, order.size());
  return order.subspan(first, std::min<std::size_t>(warp_threads, order.size() - first));
}

bool ClusterRunner::may_run(const Thread& thread) const {
  return can_run(thread) &&
         (ahead_ == Ahead::none || thread.index / warp_threads == leading_[thread.block]);
}

void ClusterRunner::run_fiber(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  thread.runner->launch_.entry.run(thread.runner->launch_.parameters);
  thread.runner->set_wait(thread, Wait::exited);
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

ClusterRunner::Group ClusterRunner::warp_group(unsigned block, std::size_t warp) {
  const std::size_t first = warp * warp_threads;
  return block_group(block).subspan(
      first, std::min<std::size_t>(warp_threads, launch_.block_threads - first));
}

// Resumes every group whose threads have all arrived at the same operation; false if there is none.
bool ClusterRunner::release_waiting() {
  bool released = false;
  for (unsigned block = 0; block < launch_.shape.cluster; ++block) {
    if (block_waits(block, Wait::block_barrier)) {
      release(block_group(block));
      released = true;
    } else if (release_warps(block)) {
      released = true;
    }
    if (release_named(block)) released = true;
    if (release_mbarriers(block)) released = true;
  }
  if (cluster_waits(Wait::cluster_barrier)) {
    release(threads_);
    released = true;
  }
  return released;
}

bool ClusterRunner::release_warps(unsigned block) {
  bool released = false;
  for (std::size_t i = 0; i < block_warps_; ++i) {
    const std::size_t place = ahead_ == Ahead::last_warp ? block_warps_ - 1 - i : i;
    const Counts& counts = warp_counts_[block * block_warps_ + place];
    if (number(counts, Wait::none) > 0) continue;
    const Group warp = warp_group(block, place);
    const auto all_wait = [&](Wait wait) { return number(counts, wait) == warp.size(); };
    if (all_wait(Wait::warp_shuffle)) {
      // Lanes that the warp does not have offer an arbitrary value, on which no kernel may rely.
      std::array<unsigned long long, warp_threads> offered;
      offered.fill(~0ull);
      std::ranges::transform(warp, offered.begin(), &Thread::value);
      for (Thread& thread : warp) thread.value = offered[thread.source_lane];
    } else if (all_wait(Wait::warp_exchange)) {
      exchange(warp);
    } else if (!all_wait(Wait::warp_barrier)) {
      continue;
    }
    release(warp);
    released = true;
    if (ahead_ != Ahead::none) break;
  }
  return released;
}

// Copies the values that lanes offer, because they are on the lanes' stacks, which change when
// lanes continue.
void ClusterRunner::exchange(Group warp) {
  Exchange& all = exchanges_[warp.front().warp];
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
    if (!block_waits(block, Wait::exited)) {
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
  while (block_waits(block, Wait::exited)) ++block;
  for (unsigned other = block; other < launch_.shape.cluster; ++other) {
    if (block_waits(other, Wait::exited) || block_waits(other, Wait::cluster_barrier)) continue;
    block = other;
    break;
  }
  std::vector<std::string> counts;
  for (const auto& [wait, words] : places) {
    const std::uint32_t count = number(block_counts_[block], wait);
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
  set_wait(*running_, wait);
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
    return runner.exchanges_[thread.warp].bytes.data();
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
