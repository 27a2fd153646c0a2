#include "engines/softmax/softmax_online.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"
#include "engines/softmax/rows.hpp"

namespace kiln {
namespace {

struct OnlineLayout : BlockLayout {
  int batch = 1;             // vectors of each input that a thread takes at a time
  int saved = 1;             // batches that it keeps in shared memory
  std::uint32_t shared = 0;  // bytes, of those and the exchanges
  int blocks_a_multiprocessor = 2;
};

// Shared memory of the exchanges between threads and between blocks: SAVED_OFFSET.
std::int64_t exchange_bytes(const SoftmaxRows& rows, const BlockLayout& layout,
                            const DeviceDescription& device) {
  const int lanes = rows.combining.lanes();
  const auto totals = static_cast<std::uint32_t>(2 * layout.results() * lanes) *
                      static_cast<std::uint32_t>(size_of(rows.compute()));
  const auto round_up = [](std::uint32_t bytes) { return (bytes + 15) / 16 * 16; };
  return 2 * layout.combine_bytes(lanes, rows.compute()) + round_up(totals) +
         round_up(static_cast<std::uint32_t>(device.largest_cluster) * totals);
}

// Two blocks a multiprocessor, so that one reads while the other writes, if half its shared memory
// then holds what a block of the largest cluster has of its rows; else one with all of it.
OnlineLayout choose_layout(const SoftmaxRows& rows, const DeviceDescription& device) {
  OnlineLayout layout;
  const std::int64_t bytes =
      rows.combining.vector * static_cast<std::int64_t>(size_of(rows.problem.type)) * rows.inputs();
  // 64 bytes of memory a thread at a time, as far as registers hold what becomes of them.
  const int most_elements = rows.compute() == KILN_DATA_DOUBLE ? 4 : 32;
  layout.batch = static_cast<int>(
      std::min<std::int64_t>({64 / bytes, 16, most_elements / rows.combining.vector}));
  if (!rows.combining.inner_combined)
    layout.tx = std::min(8, power_at_least(rows.combining.kept_vectors()));
  const std::int64_t of_block = bytes * rows.length() * layout.tx / device.largest_cluster;
  constexpr int reserved = 1024;  // of each block, by the driver
  const std::int64_t half = device.shared_memory_per_multiprocessor / 2 - reserved;
  const std::int64_t whole = device.shared_memory_per_block;
  const bool alone = of_block > half;
  // Half as many threads where each needs more than 64 registers.
  const bool wide_registers = rows.compute() == KILN_DATA_DOUBLE || rows.combining.lanes() > 4;
  int threads = alone && !wide_registers ? 1024 : 512;
  std::int64_t room = 0;
  for (;; threads /= 2) {
    layout.ty = threads / layout.tx;
    room = std::min(alone ? whole : half, whole) - exchange_bytes(rows, layout, device);
    // No more threads than a row has vectors, or than shared memory has room for one batch of.
    const bool fit = layout.ty <= rows.length() && bytes * layout.batch * threads <= room;
    if (fit || threads == 128) break;
  }
  layout.blocks_a_multiprocessor = alone ? 1 : (wide_registers ? 512 : 1024) / threads;
  const std::int64_t batch_bytes = bytes * layout.batch * threads;
  const std::int64_t batches = ceil_div(rows.length(), std::int64_t{layout.ty} * layout.batch);
  layout.saved = static_cast<int>(std::max<std::int64_t>(std::min(room / batch_bytes, batches), 1));
  layout.shared =
      static_cast<std::uint32_t>(exchange_bytes(rows, layout, device) + layout.saved * batch_bytes);
  return layout;
}

// How many blocks share a row: until what each has of it is saved, or the device is busy; but what
// runs at once in few parts is not cut into more that do not.
int choose_parts(const SoftmaxRows& rows, const OnlineLayout& layout,
                 const DeviceDescription& device) {
  const std::int64_t blocks = rows.blocks(layout);
  const std::int64_t steps = rows.length() / layout.ty;  // vectors of a thread
  const int resident = layout.blocks_a_multiprocessor;
  const auto at_once = [&](int parts) {
    return static_cast<double>(blocks * parts) <=
           cluster_places(parts, resident, device) * resident;
  };
  const auto is_saved = [&](int parts) {
    return steps <= std::int64_t{parts} * layout.saved * layout.batch;
  };
  int parts = 1;
  while (parts * 2 <= device.largest_cluster && steps >= parts * 2) {
    const bool busy = blocks * parts >= std::int64_t{resident} * device.multiprocessors;
    if (is_saved(parts) && (busy || (at_once(parts) && !at_once(parts * 2)))) break;
    parts *= 2;
  }
  return parts;
}

// Of rows that do not all run at once: while one is written, what begins next comes to L2, as far
// as a third of it goes, for written lines take their share.
RowsAhead choose_ahead(const SoftmaxRows& rows, const OnlineLayout& layout, int parts,
                       const DeviceDescription& device) {
  const int resident = layout.blocks_a_multiprocessor;
  const auto at_once = std::max(
      static_cast<std::int64_t>(cluster_places(parts, resident, device)) * resident / parts,
      std::int64_t{1});
  if (rows.blocks(layout) <= at_once) return {};
  const std::int64_t turn = rows.combining.vector * rows.inputs() * layout.threads() *
                            static_cast<std::int64_t>(size_of(rows.problem.type));
  return {static_cast<unsigned>(at_once),
          static_cast<unsigned>(device.l2_bytes / 3 / (at_once * parts * turn))};
}

}  // namespace

bool SoftmaxOnlineEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<SoftmaxProblem>(problem);
}

std::variant<Proposal, Refusal> SoftmaxOnlineEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const SoftmaxRows rows(std::get<SoftmaxProblem>(any));
  const OnlineLayout layout = choose_layout(rows, device);
  KernelSpec spec = rows.kernel("softmax_online", layout, device.largest_cluster * layout.batch);
  spec.tile = cat(layout.tx, "x", layout.ty, " threads, ", rows.combining.vector,
                  " elements a load, ", layout.saved * layout.batch, " of them saved");
  spec.shared_memory = layout.shared;
  if (spec.shared_memory > static_cast<std::uint32_t>(device.shared_memory_per_block))
    return Refusal{cat("it needs ", spec.shared_memory, " bytes of shared memory; a block has ",
                       device.shared_memory_per_block)};
  const auto add = [&](const char* name, std::int64_t value) {
    spec.constants.push_back({name, value, ""});
  };
  add("BATCH", layout.batch);
  add("SAVED", layout.saved);
  add("LARGEST_CLUSTER", device.largest_cluster);
  spec.clustered = device.largest_cluster > 1;  // at some batch: one kernel is for all
  add("SHARED_BYTES", layout.shared);
  // Many loads of single elements take more registers than two blocks have: not so many blocks
  // then.
  const bool single = rows.combining.vector == 1;
  add("MIN_BLOCKS", std::max(layout.blocks_a_multiprocessor * (single ? 3 : 4) / 4, 1));
  const int parts = choose_parts(rows, layout, device);
  return rows.proposal(std::move(spec), layout, parts, choose_ahead(rows, layout, parts, device));
}

}  // namespace kiln
