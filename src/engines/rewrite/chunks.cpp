#include "engines/rewrite/chunks.hpp"

#include <algorithm>
#include <utility>

#include "codegen/loops.hpp"
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
  constexpr std::int64_t most_looked_at = 4096;
  for (std::int64_t parts = least; parts < std::min(2 * least, most_looked_at); ++parts)
    if (cut.rows % (parts * cut.granule) == 0) return parts;
  return least;
}

// Runs that begin at these chunks and end at `end`.
std::vector<ChunkRun> runs_from(const std::vector<std::int64_t>& begins, std::int64_t end) {
  std::vector<ChunkRun> runs;
  for (std::size_t i = 0; i < begins.size(); ++i)
    runs.push_back({begins[i], (i + 1 < begins.size() ? begins[i + 1] : end) - begins[i]});
  return runs;
}

// The runs of whole images. Chunks with one image more come first, and the one after them copies
// the result of a larger chunk out.
std::vector<ChunkRuns> runs_of_images(const ChunkLayout& layout) {
  const std::int64_t more = layout.batch % layout.chunks, last = layout.chunks - 1;
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t begin : {std::int64_t{1}, more, more + 1, last})
    if (begin > begins.back() && begin <= last) begins.push_back(begin);
  return {{runs_from(begins, layout.chunks)}};
}

// The parts of an image, but the first, at which a run begins: behind the first, at the last, and
// where what a part needs of a tensor first reaches the image's first row or its last, or lies
// outside.
std::vector<std::int64_t> begins_of_parts(const RelayoutProblem& problem, const ChunkLayout& layout,
                                          std::int64_t parts) {
  std::vector<std::int64_t> begins{1, parts - 1};
  for (const RelayoutTensor& tensor : problem.tensors) {
    const RelayoutRange first = problem.range(tensor, chunk_of(layout, 0)),
                        second = problem.range(tensor, chunk_of(layout, 1));
    const std::int64_t each = second.row - first.row, rows = tensor.copied[problem.cut.dim];
    for (const std::int64_t row : {-first.rows, std::int64_t{0}, rows - first.rows, rows})
      if (const std::int64_t behind = row - first.row; behind > 0)
        if (const std::int64_t part = ceil_div(behind, each); part > 1 && part < parts - 1)
          begins.push_back(part);
  }
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  return begins;
}

// The runs of parts of images. The first part of an image follows the last one of another; only
// the very first part does not.
std::vector<ChunkRuns> runs_of_parts(const RelayoutProblem& problem, const ChunkLayout& layout) {
  const std::int64_t parts = layout.chunks / layout.batch;
  std::vector<ChunkRun> of_image = runs_from(begins_of_parts(problem, layout, parts), parts);
  std::vector<ChunkRuns> all{{{{0, 1}}}};
  if (layout.batch > 1) {
    all.push_back({of_image, layout.batch - 1});
    all.back().runs.push_back({parts, 1});
  }
  for (ChunkRun& run : of_image) run.first += (layout.batch - 1) * parts;
  all.push_back({std::move(of_image)});
  return all;
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
    const std::int64_t first = cut.even ? even_parts(cut, least) : least;
    for (const std::int64_t parts : {first, even_parts(cut, first + 1)})
      if (const std::int64_t part = round_up(ceil_div(cut.rows, parts), cut.granule);
          part < cut.rows && ceil_div(cut.rows, part) <= most_chunks / batch &&
          (!cut.even || cut.rows % part == 0))
        add({.part = part});
  }
  if (!divisions.empty()) return divisions;
  if (most > 0 && cut.even)
    return Refusal{cat("an image's ", rows_text(cut.rows), " have no equal parts of at most ", most,
                       ", whose copies fit into the workspace")};
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
  layout.runs = division.part > 0 ? runs_of_parts(problem, layout) : runs_of_images(layout);
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

double sum_of_chunks(const ChunkLayout& layout, const std::function<double(std::int64_t)>& value) {
  double sum = 0;
  for (const auto& [runs, times] : layout.runs)
    for (const auto& [first, count] : runs) {
      const double begin = value(first), end = count > 1 ? value(first + count - 1) : begin;
      sum += static_cast<double>(times) * static_cast<double>(count) * ((begin + end) / 2);
    }
  return sum;
}

StepList steps_of_chunks(const ChunkLayout& layout,
                         const std::function<StepList(std::int64_t)>& steps_of) {
  const std::int64_t parts = layout.division.part > 0 ? layout.chunks / layout.batch : 0;
  // The runs' chunks, or those that are `further` behind them.
  const auto once = [&](const std::vector<ChunkRun>& runs, std::int64_t further) {
    StepList steps;
    for (const auto& [number, count] : runs) {
      StepList run = steps_of(number + further);
      if (count > 1) repeat(run, steps_of(number + further + 1), count);
      append(steps, std::move(run));
    }
    return steps;
  };
  StepList all;
  for (const auto& [runs, times] : layout.runs) {
    StepList steps = once(runs, 0);
    if (times > 1) repeat(steps, once(runs, parts), times);
    append(all, std::move(steps));
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
  std::string cuts;
  if (!problem.slice.empty()) cuts += cat(", ", problem.slice, " at a time");
  if (layout.division.part > 0)
    cuts += cat(", ", rows_text(layout.division.part), problem.cut.even ? " of all planes" : "",
                " at a time");
  return cat(problem.padded ? "padded " : "", names, cuts, cuts.empty() ? "" : ",",
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
