// Cuts a batch into chunks of images: how many there are, where their copies are in the workspace,
// and what the engine of the copies does with a chunk.
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

struct RelaidLayout {
  std::int64_t batch = 0, chunks = 0;  // chunks differ by at most one image
  std::size_t workspace = 0;           // byte at which the inner proposal's own workspace begins
};
// The fewest chunks whose copies fit into `budget` bytes of workspace together with `sums` bytes of
// sums.
std::variant<std::int64_t, Refusal> least_chunks(const RelaidProblem& problem, std::size_t sums,
                                                 std::size_t budget);
// The numbers of chunks that are estimated. More chunks than the fewest may fill the chip more
// evenly, and leave more workspace to the inner proposal.
std::vector<std::int64_t> numbers_of_chunks(std::int64_t least, std::int64_t batch);
// Places the sums and then the copies in the workspace: sets RelaidTensor::first.
RelaidLayout lay_copies(RelaidProblem& problem, std::size_t sums, std::int64_t chunks);

struct RelaidChunk {
  std::int64_t first = 0, images = 0;
};
// Chunk `number`; an empty one if the number is -1 or the number of chunks.
RelaidChunk chunk_of(const RelaidLayout& layout, std::int64_t number);

// The choices of engines for the copies of a chunk, by its number of images. Chunks have at most
// two different numbers of images; each is estimated once.
class InnerChoices {
 public:
  // problem: that of the copies; workspace: bytes that the engines may use.
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

// The description of a candidate's tile: which tensors are copied, and the kernel that computes the
// copies.
std::string relaid_tile(const RelaidProblem& problem, const std::vector<const char*>& copied,
                        const Proposal& inner, std::size_t budget);

// The places of the operands of chunk `number`, in the order of operands_of(problem.inner).
RelaidPlaces places_of(const RelaidProblem& problem, const RelaidLayout& layout,
                       std::int64_t number);

}  // namespace kiln
