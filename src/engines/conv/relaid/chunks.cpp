#include "engines/conv/relaid/chunks.hpp"

#include <algorithm>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

constexpr std::size_t alignment = 256;  // bytes, of each copy in the workspace
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

std::variant<std::int64_t, Refusal> least_chunks(const RelaidProblem& problem, std::size_t sums,
                                                 std::size_t budget) {
  const std::size_t margin = (problem.tensors.size() + problem.once.size() + 1) * alignment,
                    each = problem.image_bytes();
  std::size_t fixed = sums;
  for (const RelaidTensor& tensor : problem.once) fixed += tensor.bytes();
  if (fixed + margin + each > budget)
    return Refusal{cat("what is copied of a filter and of one image has ", each + fixed,
                       " bytes; expected at most the workspace, ", budget)};
  const auto most = static_cast<std::int64_t>((budget - fixed - margin) / each);
  return ceil_div(problem.inner.batch, std::min(most, problem.inner.batch));
}

std::vector<std::int64_t> numbers_of_chunks(std::int64_t least, std::int64_t batch) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t number : {least, least + 1, least + least / 2})
    if (number <= batch && (numbers.empty() || number > numbers.back())) numbers.push_back(number);
  return numbers;
}

RelaidLayout lay_copies(RelaidProblem& problem, std::size_t sums, std::int64_t chunks) {
  RelaidLayout layout{problem.inner.batch, chunks, aligned(sums)};
  const auto most = static_cast<std::size_t>(ceil_div(layout.batch, chunks));
  const auto lay = [&](RelaidTensor& tensor, std::size_t bytes) {
    tensor.first = layout.workspace;
    layout.workspace += aligned(bytes);
  };
  for (RelaidTensor& tensor : problem.once) lay(tensor, tensor.bytes());
  for (RelaidTensor& tensor : problem.tensors) lay(tensor, tensor.image_bytes() * most);
  return layout;
}

RelaidChunk chunk_of(const RelaidLayout& layout, std::int64_t number) {
  if (number < 0 || number >= layout.chunks) return {};
  const std::int64_t least = layout.batch / layout.chunks, more = layout.batch % layout.chunks;
  return {number * least + std::min(number, more), least + (number < more ? 1 : 0)};
}

Terms InnerChoices::terms() const {
  Terms terms;
  terms.workspace = workspace_;
  return terms;
}

const ChoiceEstimate& InnerChoices::estimate(std::int64_t images) {
  const auto found = std::ranges::find(known_, images, &Inner::images);
  if (found != known_.end()) return found->estimate;
  problem_.batch = images;
  known_.push_back({images, estimate_choice(problem_, device_, terms())});
  return known_.back().estimate;
}

Proposal InnerChoices::proposal(std::int64_t images) {
  problem_.batch = images;
  std::vector<EngineRefusal> ignored;
  return choose(problem_, device_, terms(), ignored);
}

std::string relaid_tile(const RelaidProblem& problem, const std::vector<const char*>& copied,
                        const Proposal& inner, std::size_t budget) {
  std::string names;
  for (std::size_t i = 0; i < copied.size(); ++i)
    names += cat(i == 0 ? "" : i + 1 == copied.size() ? " and " : ", ", copied[i]);
  return cat(problem.padded ? "padded " : "", names,
             budget == most_workspace ? "" : cat(" in ", budget >> 20, " MiB"), " for ",
             describe(name_of(inner.kernel, inner.launch)));
}

RelaidPlaces places_of(const RelaidProblem& problem, const RelaidLayout& layout,
                       std::int64_t number) {
  RelaidPlaces places;
  places.operands.resize(operands_of(problem.inner).size());
  const auto copy = [&](const RelaidTensor& tensor) {
    places.operands[tensor.operand] = {true, static_cast<std::int64_t>(tensor.first)};
  };
  for (const RelaidTensor& tensor : problem.once) copy(tensor);
  for (const RelaidTensor& tensor : problem.tensors) copy(tensor);
  for (const RelaidTensor& tensor : problem.as_they_lie)
    places.operands[tensor.operand].first = chunk_of(layout, number).first * tensor.image_stride *
                                            static_cast<std::int64_t>(size_of(tensor.type));
  places.workspace = static_cast<std::int64_t>(layout.workspace);
  return places;
}

}  // namespace kiln
