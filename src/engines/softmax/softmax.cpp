#include "engines/softmax/softmax.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/softmax/rows.hpp"

namespace kiln {
namespace {

constexpr int threads = 256;
constexpr std::int64_t usual_images = 16;  // assumed: the kernel serves every batch size

// Registers (4 bytes) of a thread for elements.
constexpr std::int64_t most_words(bool backward) { return backward ? 48 : 32; }

// Registers for one vector of each input in the compute type.
std::int64_t words_of_vector(const SoftmaxRows& rows) {
  return rows.combining.vector * rows.inputs() *
         static_cast<std::int64_t>(size_of(rows.compute()) / 4);
}

// As few threads for a row as hold it in registers, doubled until the rows of the usual batch keep
// the device busy. Enough neighboring threads, along a row or across rows, to read whole sectors
// and lines.
BlockLayout choose_layout(const SoftmaxRows& rows, const DeviceDescription& device) {
  const std::int64_t length = rows.length(), kept = rows.combining.kept_vectors();
  const std::int64_t most = most_words(rows.problem.backward) / words_of_vector(rows);
  const std::int64_t busy = std::int64_t{2} * device.multiprocessors * threads;
  BlockLayout layout;
  if (rows.combining.inner_combined) {
    layout.ty = std::min(power_at_most(length / 2), 8);
    while (layout.ty < 32 && ceil_div(length, layout.ty) > std::max<std::int64_t>(most / 2, 3))
      layout.ty *= 2;
    while (layout.ty < threads && ceil_div(length, layout.ty) > most) layout.ty *= 2;
    while (layout.ty < threads && layout.ty < length && usual_images * kept * layout.ty < busy)
      layout.ty *= 2;
  } else {
    constexpr int least_tx = 8;
    layout.ty = std::min(power_at_least(ceil_div(length, most)), threads / least_tx);
    layout.tx = std::min({32, power_at_least(kept), threads / layout.ty});
    while (layout.tx > least_tx && layout.ty < length && usual_images * kept * layout.ty < busy) {
      layout.tx /= 2;
      layout.ty = std::min(layout.ty * 2, threads / layout.tx);
    }
  }
  layout.groups = threads / (layout.tx * layout.ty);
  return layout;
}

}  // namespace

bool SoftmaxEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<SoftmaxProblem>(problem);
}

std::variant<Proposal, Refusal> SoftmaxEngine::propose(const Problem& any,
                                                       const DeviceDescription& device) const {
  const SoftmaxRows rows(std::get<SoftmaxProblem>(any));
  const BlockLayout layout = choose_layout(rows, device);
  const std::int64_t count = ceil_div(rows.length(), layout.ty);
  const std::int64_t words = count * words_of_vector(rows);
  if (words > most_words(rows.problem.backward))
    return Refusal{cat("rows of ",
                       rows.length() * (rows.combining.inner_combined ? rows.combining.vector : 1),
                       " elements; ", layout.ty, " threads do not hold one in registers")};
  KernelSpec spec = rows.kernel("softmax", layout, static_cast<int>(count) + 1);
  spec.tile = cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", count, " x ",
                  rows.combining.vector, " elements each");
  spec.shared_memory = 2 * layout.combine_bytes(rows.combining.lanes(), rows.compute());
  spec.constants.push_back({"COUNT", count, ""});
  // A thread needs registers for its elements and about 30 more.
  spec.constants.push_back({"MIN_BLOCKS", std::int64_t{words <= 32 ? 4 : 3}, ""});
  return rows.proposal(std::move(spec), layout, 1);
}

}  // namespace kiln
