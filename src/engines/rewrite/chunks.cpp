#include "engines/rewrite/chunks.hpp"

#include <algorithm>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

constexpr std::size_t alignment = 256;  // bytes, of each copy in the workspace
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::string rows_text(std::int64_t rows) { return cat(rows, rows == 1 ? " row" : " rows"); }

// The most rows of a part, whose copies fit into `bytes`; 0 if none do.
std::int64_t most_rows(const RelayoutProblem& problem, std::size_t bytes) {
  const RelayoutCut& cut = problem.cut;
  if (cut.granule == 0) return 0;
  std::int64_t fits = 0, above = ceil_div(cut.rows, cut.granule);  // granules
  while (fits + 1 < above) {
    const std::int64_t middle = (fits + above) / 2;
    const bool small = problem.bytes({.images = 1, .rows = middle * cut.granule}) <= bytes;
    (small ? fits : above) = middle;
  }
  return fits * cut.granule;
}

// The fewest parts of equal size, so that one kernel computes all, if they are not many more than
// the fewest.
std::int64_t even_parts(const RelayoutCut& cut, std::int64_t least) {
  for (std::int64_t parts = least; parts < std::min(2 * least, most_chunks); ++parts)
    if (cut.rows % (parts * cut.granule) == 0) return parts;
  return least;
}

Refusal too_many_chunks() {
  return Refusal{cat("the batch would be cut into more than ", most_chunks, " chunks")};
}

}  // namespace

std::variant<std::vector<ChunkDivision>, Refusal> divisions_of(const RelayoutProblem& problem,
                                                               std::size_t sums,
                                                               std::size_t budget) {
  const RelayoutCut& cut = problem.cut;
  const std::int64_t batch = problem.inner.batch;
  const std::size_t margin = (problem.tensors.size() + problem.once.size() + 1) * alignment,
                    each = problem.bytes({.images = 1, .rows = cut.rows});
  std::size_t fixed = sums;
  for (const RelayoutTensor& tensor : problem.once) fixed += tensor.bytes();
  const std::size_t rest = fixed + margin < budget ? budget - fixed - margin : 0;
  std::vector<ChunkDivision> divisions;
  const auto add = [&](const ChunkDivision& division) {
    const bool known = std::ranges::any_of(divisions, [&](const ChunkDivision& before) {
      return before.chunks == division.chunks && before.part == division.part;
    });
    if (!known) divisions.push_back(division);
  };
  if (each <= rest) {
    const auto most = static_cast<std::int64_t>(rest / each);
    const std::int64_t least = ceil_div(batch, std::min(most, batch));
    for (const std::int64_t chunks : {least, least + 1, least + least / 2})
      if (chunks <= std::min(batch, most_chunks)) add({.chunks = chunks});
    if (least > most_chunks) return too_many_chunks();
    if (most > 1) return divisions;
  }
  const std::int64_t most = most_rows(problem, rest);
  if (most > 0) {
    const std::int64_t least = ceil_div(cut.rows, most);
    if (divisions.empty() && least > most_chunks / batch) return too_many_chunks();
    // Few sizes: all engines estimate each of them.
    for (const std::int64_t parts : {least, even_parts(cut, least + 1)})
      if (const std::int64_t part = round_up(ceil_div(cut.rows, parts), cut.granule);
          part < cut.rows && ceil_div(cut.rows, part) <= most_chunks / batch)
        add({.part = part});
  }
  if (!divisions.empty()) return divisions;
  if (cut.granule == 0)
    return Refusal{cat("what is copied of a filter and of one image has ", each + fixed,
                       " bytes; expected at most the workspace, ", budget,
                       ", because the image cannot be cut: ", cut.refusal)};
  return Refusal{cat("what is copied of a filter and of ", rows_text(cut.granule),
                     " of an image has ", problem.bytes({.images = 1, .rows = cut.granule}) + fixed,
                     " bytes; expected at most the workspace, ", budget)};
}

ChunkLayout lay_copies(RelayoutProblem& problem, std::size_t sums, const ChunkDivision& division) {
  const std::int64_t batch = problem.inner.batch, rows = problem.cut.rows;
  ChunkLayout layout{division, batch, rows, division.chunks, aligned(sums)};
  if (division.part > 0) layout.chunks = batch * ceil_div(rows, division.part);
  const RelayoutChunk largest = chunk_of(layout, 0);
  const auto lay = [&](RelayoutTensor& tensor, std::size_t bytes) {
    tensor.first = layout.workspace;
    layout.workspace += aligned(bytes);
  };
  for (RelayoutTensor& tensor : problem.once) lay(tensor, tensor.bytes());
  for (RelayoutTensor& tensor : problem.tensors)
    lay(tensor, problem.range(tensor, largest).bytes(tensor));
  return layout;
}

RelayoutChunk chunk_of(const ChunkLayout& layout, std::int64_t number) {
  if (number < 0 || number >= layout.chunks) return {};
  if (const std::int64_t part = layout.division.part; part > 0) {
    const std::int64_t parts = ceil_div(layout.rows, part), row = number % parts * part;
    return {number / parts, 1, row, std::min(part, layout.rows - row)};
  }
  const std::int64_t least = layout.batch / layout.chunks, more = layout.batch % layout.chunks;
  return {number * least + std::min(number, more), least + (number < more ? 1 : 0), 0, layout.rows};
}

std::vector<AlikeChunks> alike_chunks(const ChunkLayout& layout) {
  std::vector<AlikeChunks> all;
  const auto add = [&](std::int64_t number, std::int64_t count) {
    if (count > 0) all.push_back({number, count});
  };
  add(0, 1);
  if (layout.division.part > 0) {
    const std::int64_t parts = ceil_div(layout.rows, layout.division.part);
    for (std::int64_t part = 1; part < parts; ++part) add(part, layout.batch);
    add(parts, layout.batch - 1);
    return all;
  }
  // Those with one image more come first.
  const std::int64_t more = layout.batch % layout.chunks;
  if (more == 0) {
    add(1, layout.chunks - 1);
  } else {
    add(1, more - 1);
    add(more, 1);
    add(more + 1, layout.chunks - more - 1);
  }
  return all;
}

ChunkChoices::Known& ChunkChoices::known(const RelayoutChunk& chunk) {
  const auto found = std::ranges::find_if(known_, [&](const Known& known) {
    return known.images == chunk.images && known.rows == chunk.rows;
  });
  if (found != known_.end()) return *found;
  known_.push_back(
      {chunk.images, chunk.rows, inner_.estimate(part_of(problem_, cut_, chunk), grant_)});
  return known_.back();
}

const Proposal& ChunkChoices::proposal(const RelayoutChunk& chunk) {
  Known& own = known(chunk);
  if (!own.proposal) own.proposal = inner_.choose(part_of(problem_, cut_, chunk), grant_);
  return *own.proposal;
}

std::string relayout_tile(const RelayoutProblem& problem, const ChunkLayout& layout,
                          const std::vector<const char*>& copied, const Proposal& inner,
                          std::size_t budget) {
  std::string names;
  for (std::size_t i = 0; i < copied.size(); ++i)
    names += cat(i == 0 ? "" : i + 1 == copied.size() ? " and " : ", ", copied[i]);
  return cat(
      problem.padded ? "padded " : "", names,
      problem.slice.empty() ? "" : cat(", ", problem.slice, " at a time,"),
      layout.division.part == 0 ? "" : cat(", ", rows_text(layout.division.part), " at a time,"),
      budget == most_workspace ? "" : cat(" in ", budget >> 20, " MiB"), " for ",
      describe(name_of(inner.first().kernel, inner.first().launch)));
}

RelayoutPlaces places_of(const RelayoutProblem& problem, const ChunkLayout& layout,
                         std::int64_t number) {
  RelayoutPlaces places;
  places.operands.resize(operands_of(problem.inner).size());
  const auto copy = [&](const RelayoutTensor& tensor) {
    places.operands[tensor.operand] = {true, static_cast<std::int64_t>(tensor.first)};
  };
  for (const RelayoutTensor& tensor : problem.once) copy(tensor);
  for (const RelayoutTensor& tensor : problem.tensors) copy(tensor);
  for (const RelayoutTensor& tensor : problem.as_they_lie) {
    const RelayoutRange range = problem.range(tensor, chunk_of(layout, number));
    places.operands[tensor.operand].first =
        (range.first * tensor.image_stride + range.row * tensor.row_strides[problem.cut.dim]) *
        static_cast<std::int64_t>(size_of(tensor.type));
  }
  places.workspace = static_cast<std::int64_t>(layout.workspace);
  return places;
}

}  // namespace kiln
