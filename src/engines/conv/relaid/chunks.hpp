// Copies in chunks of images: what lies where in the workspace, and the steps of a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/choice_estimate.hpp"
#include "engines/conv/relaid/relaid_problem.hpp"
#include "engines/engine.hpp"

namespace kiln {

// How many images at a time, and where in the workspace what the inner proposal needs begins.
struct RelaidLayout {
  std::int64_t batch = 0, chunks = 0;  // as equal as can be
  std::size_t workspace = 0;
};
// The fewest chunks whose copies have room in the budget, behind sums of so many bytes.
std::variant<std::int64_t, Refusal> least_chunks(const RelaidProblem& problem, std::size_t sums,
                                                 std::size_t budget);
// Numbers of chunks that are worth an estimate: more of them may fill the chip more evenly, and
// leave more workspace to the inner proposal.
std::vector<std::int64_t> numbers_of_chunks(std::int64_t least, std::int64_t batch);
RelaidLayout lay_copies(RelaidProblem& problem, std::size_t sums, std::int64_t chunks);

struct RelaidChunk {
  std::int64_t first = 0, images = 0;
};
// None before the first and behind the last.
RelaidChunk chunk_of(const RelaidLayout& layout, std::int64_t number);

// What the engines of the copies would do with some numbers of images, of which chunks have two at
// most: each is estimated once, and made if a proposal is asked for.
class InnerChoices {
 public:
  InnerChoices(const ConvolutionProblem& problem, std::size_t workspace,
               const DeviceDescription& device)
      : problem_(problem), workspace_(workspace), device_(device) {}

  double seconds(std::int64_t images) { return estimate(images).seconds; }
  std::size_t workspace(std::int64_t images) { return estimate(images).workspace; }
  Proposal proposal(std::int64_t images);

 private:
  struct Inner {
    std::int64_t images;
    ChoiceEstimate estimate;
  };
  const ChoiceEstimate& estimate(std::int64_t images);
  Terms terms() const;

  ConvolutionProblem problem_;
  std::size_t workspace_;
  const DeviceDescription& device_;
  std::vector<Inner> known_{};
};

// The name of a candidate: what is copied, and what happens to the copies.
std::string relaid_tile(const RelaidProblem& problem, const std::vector<const char*>& copied,
                        const Proposal& inner, std::size_t budget);

// Of the operands for chunk `number`.
RelaidPlaces places_of(const RelaidProblem& problem, const RelaidLayout& layout,
                       std::int64_t number);

}  // namespace kiln
