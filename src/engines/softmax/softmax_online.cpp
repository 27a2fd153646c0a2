#include "engines/softmax/softmax_online.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/softmax/rows.hpp"

namespace kiln {
namespace {

struct OnlineLayout : BlockLayout {
  int batch = 1;             // vectors of each input that a thread loads at a time
  int saved = 1;             // such batches that it keeps in shared memory
  std::uint32_t shared = 0;  // bytes of shared memory for the saved batches and the exchanges
  int blocks_a_multiprocessor = 2;
  bool in_turn = false;  // a cluster takes several rows
};

// Bytes of shared memory for exchanges between threads and between blocks; the constant
// SAVED_OFFSET.
std::int64_t exchange_bytes(const SoftmaxRows& rows, const OnlineLayout& layout,
                            const DeviceDescription& device) {
  const int lanes = rows.combining.lanes();
  const auto totals = static_cast<std::uint32_t>(2 * layout.results() * lanes) *
                      static_cast<std::uint32_t>(size_of(rows.compute()));
  const auto round_up = [](std::uint32_t bytes) { return (bytes + 15) / 16 * 16; };
  return 2 * layout.combine_bytes(lanes, rows.compute()) +
         (layout.in_turn ? 2 : 1) * round_up(totals) +
         round_up(static_cast<std::uint32_t>(device.largest_cluster) * totals);
}

std::int64_t half_of_shared_memory(const DeviceDescription& device) {
  constexpr int reserved = 1024;  // bytes of each block that the driver reserves
  return device.shared_memory_per_multiprocessor / 2 - reserved;
}

// The layout with two blocks on a multiprocessor, so that one reads while the other writes; or,
// `alone`, with one block that has all of the shared memory.
OnlineLayout choose_layout(const SoftmaxRows& rows, const DeviceDescription& device, bool alone,
                           bool in_turn) {
  OnlineLayout layout;
  layout.in_turn = in_turn;
  const std::int64_t bytes =
      rows.combining.vector * static_cast<std::int64_t>(size_of(rows.problem.type)) * rows.inputs();
  // A thread loads 64 bytes at a time, or less if the converted elements do not fit in registers.
  const int most_elements = rows.compute() == KILN_DATA_DOUBLE ? 4 : in_turn ? 16 : 32;
  layout.batch = static_cast<int>(
      std::min<std::int64_t>({64 / bytes, 16, most_elements / rows.combining.vector}));
  if (!rows.combining.inner_combined)
    layout.tx = std::min(8, power_at_least(rows.combining.kept_vectors()));
  const std::int64_t half = half_of_shared_memory(device);
  const std::int64_t whole = device.shared_memory_per_block;
  // Half as many threads if each needs more than 64 registers.
  const bool wide_registers = rows.compute() == KILN_DATA_DOUBLE || rows.combining.lanes() > 4;
  int threads = alone && !wide_registers ? 1024 : 512;
  std::int64_t room = 0;
  for (;; threads /= 2) {
    layout.ty = threads / layout.tx;
    room = std::min(alone ? whole : half, whole) - exchange_bytes(rows, layout, device);
    // At most as many threads as a row has vectors, and as shared memory holds a batch for.
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

// Whether half of a multiprocessor's shared memory holds a block's share of its rows in the largest
// cluster.
bool half_is_enough(const SoftmaxRows& rows, const DeviceDescription& device) {
  const OnlineLayout paired = choose_layout(rows, device, false, false);
  const std::int64_t of_row = rows.combining.vector * rows.inputs() * rows.length() * paired.tx *
                              static_cast<std::int64_t>(size_of(rows.problem.type));
  return of_row / device.largest_cluster <= half_of_shared_memory(device);
}

// The number of blocks that share a row. It is doubled until each block's share fits in shared
// memory and either the device is busy or more clusters would no longer all run at once.
int choose_parts(const SoftmaxRows& rows, const OnlineLayout& layout,
                 const DeviceDescription& device, int most) {
  const std::int64_t blocks = rows.blocks(layout);
  const std::int64_t steps = rows.length() / layout.ty;  // vectors of a thread of a single block
  const int resident = layout.blocks_a_multiprocessor;
  const auto at_once = [&](int parts) {
    return static_cast<double>(blocks * parts) <=
           cluster_places(parts, resident, device) * resident;
  };
  const auto is_saved = [&](int parts) {
    return steps <= std::int64_t{parts} * layout.saved * layout.batch;
  };
  int parts = 1;
  while (parts * 2 <= most && steps >= parts * 2) {
    const bool busy = blocks * parts >= std::int64_t{resident} * device.multiprocessors;
    if (is_saved(parts) && (busy || (at_once(parts) && !at_once(parts * 2)))) break;
    parts *= 2;
  }
  return parts;
}

std::variant<Proposal, Refusal> propose(const SoftmaxRows& rows, const OnlineLayout& layout,
                                        const DeviceDescription& device, int most_parts,
                                        const char* engine) {
  KernelSpec spec = rows.kernel("softmax_online", layout, device.largest_cluster * layout.batch);
  spec.engine = engine;
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
  // One kernel serves all batch sizes, and some of them need clusters.
  spec.clustered = device.largest_cluster > 1;
  add("SHARED_BYTES", layout.shared);
  spec.constants.push_back({"IN_TURN", layout.in_turn, ""});
  // Loads of single elements take more registers, so fewer blocks share a multiprocessor.
  const bool single = rows.combining.vector == 1;
  const int resident = layout.blocks_a_multiprocessor;
  add("MIN_BLOCKS", std::max(resident * (single ? 3 : 4) / 4, 1));
  const int parts = choose_parts(rows, layout, device, most_parts);
  auto answer = rows.proposal(std::move(spec), layout, parts);
  if (auto* proposal = std::get_if<Proposal>(&answer); proposal != nullptr && layout.in_turn) {
    const auto at_once =
        static_cast<std::uint32_t>(cluster_places(parts, resident, device)) * resident / parts;
    std::uint32_t& blocks = proposal->first().launch.shape.grid[0];
    blocks = std::min<std::uint32_t>(blocks, at_once * parts);
  }
  return answer;
}

// The estimated time, as a multiple of the time to move every operand once; an H200 took these for
// 28 rows of 1.3 million f32 elements. Where there are no more blocks than multiprocessors, a
// second block would have nothing to do. A cluster with a single row has nothing to read while it
// writes it, and rows that half of shared memory holds were not measured in turn: in both cases the
// engine of single rows comes first. `blocks`: of all rows.
double slowdown(const OnlineLayout& layout, const LaunchSpec& launch, std::int64_t blocks,
                bool long_rows, const DeviceDescription& device) {
  const bool alone = layout.blocks_a_multiprocessor == 1;
  if (!layout.in_turn) return alone && blocks > device.multiprocessors ? 1.79 : 1.55;
  if (!long_rows || blocks <= launch.shape.grid[0]) return 1.85;
  return alone ? 1.51 : 1.48;
}

// If shared memory holds the rows of two blocks, the candidate has two blocks on a multiprocessor.
// Otherwise there are two candidates: one block, which keeps more of its rows, and two blocks,
// which hide each other's waits but read more elements twice. In turn there is a third: one block
// and clusters of half the size, of which more of the chip's multiprocessors make up whole ones.
std::variant<std::vector<Candidate>, Refusal> candidates_of(const Problem& any,
                                                            const DeviceDescription& device,
                                                            const char* engine, bool in_turn) {
  const SoftmaxRows rows(std::get<SoftmaxProblem>(any));
  std::vector<Candidate> out;
  const bool paired = half_is_enough(rows, device);
  struct Shape {
    bool alone;
    int most_parts;
  };
  const int largest = device.largest_cluster;
  std::vector<Shape> shapes;
  if (!paired) shapes.push_back({true, largest});
  shapes.push_back({false, largest});
  if (!paired && in_turn && largest > 1) shapes.push_back({true, largest / 2});
  for (const Shape& shape : shapes) {
    const OnlineLayout layout = choose_layout(rows, device, shape.alone, in_turn);
    auto answer = propose(rows, layout, device, shape.most_parts, engine);
    if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
    Candidate& candidate = out.emplace_back();
    candidate.kernel = static_cast<int>(out.size()) - 1;
    candidate.made = std::move(std::get<Proposal>(answer));
    const LaunchSpec& launch = candidate.made->first().launch;
    constexpr double not_measured = 1.1;
    candidate.seconds =
        memory_bound_seconds(work_of(any, false).bytes, device) *
        slowdown(layout, launch, rows.blocks(layout) * launch.shape.cluster, !paired, device) *
        (shape.most_parts < largest ? not_measured : 1);
  }
  return out;
}

}  // namespace

bool SoftmaxOnlineEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<SoftmaxProblem>(problem);
}

std::variant<std::vector<Candidate>, Refusal> SoftmaxOnlineEngine::candidates(
    const Problem& problem, const DeviceDescription& device) const {
  return candidates_of(problem, device, name(), false);
}

Proposal SoftmaxOnlineEngine::make(const Problem&, const DeviceDescription&,
                                   Candidate candidate) const {
  return std::move(candidate.made).value();
}

bool SoftmaxOnlineInTurnEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<SoftmaxProblem>(problem);
}

std::variant<std::vector<Candidate>, Refusal> SoftmaxOnlineInTurnEngine::candidates(
    const Problem& problem, const DeviceDescription& device) const {
  return candidates_of(problem, device, name(), true);
}

Proposal SoftmaxOnlineInTurnEngine::make(const Problem&, const DeviceDescription&,
                                         Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
