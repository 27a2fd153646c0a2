// Cuts a batch into chunks of images, or of parts of images: how many there are, where their copies
// are in the workspace, and what the engine of the copies does with a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/engine.hpp"
#include "engines/rewrite/relayout_problem.hpp"
#include "engines/rewrite/rewrite.hpp"

namespace kiln {

struct ChunkDivision {
  std::int64_t chunks = 0;  // whole images; they differ by at most one image
  std::int64_t part = 0;  // rows of a chunk, or 0 for whole images; the last of an image has fewer
};
// Chunks that follow each other and are alike: they and the chunks before them have the same sizes,
// and their addresses, and how much of their copies is padding, grow evenly from one to the next.
struct ChunkRun {
  std::int64_t first = 0, count = 1;
};
// Runs that are gone through `times` times, each time one image further on.
struct ChunkRuns {
  std::vector<ChunkRun> runs;
  std::int64_t times = 1;
};
struct ChunkLayout {
  ChunkDivision division;
  std::int64_t batch = 0, rows = 0;  // rows: of an image
  std::int64_t chunks = 0;
  std::size_t workspace = 0;      // byte at which the inner proposal's own workspace begins
  std::vector<ChunkRuns> runs{};  // all chunks in order: few runs, however many chunks there are
};
// The most chunks of a problem, so that launches are counted in 32 bits. If a chunk takes all of
// most_workspace, so many have copies of 16 TiB, more than a device has.
inline constexpr std::int64_t most_chunks = 1 << 20;

// The divisions that are estimated: those of which all copies of a chunk fit into `budget` bytes of
// workspace together with `sums` bytes of sums, and which have at most most_chunks. More chunks
// than the fewest may fill the chip more evenly, and leave more workspace to the inner proposal.
// Images are cut only if chunks have one.
std::variant<std::vector<ChunkDivision>, Refusal> divisions_of(const RelayoutProblem& problem,
                                                               std::size_t sums,
                                                               std::size_t budget);
// Places the sums and then the copies in the workspace, and sets RelayoutTensor::first. The first
// and the last chunk are runs of their own.
ChunkLayout lay_copies(RelayoutProblem& problem, std::size_t sums, const ChunkDivision& division);

// By what factor the estimate of all chunks is raised. On an H200, parts of images took 1.15 to 1.6
// times their estimates without it (1.0 to 1.4 times with it), and the least is taken. Without it,
// they would take layers from engines that are as fast.
inline double margin_of(const ChunkLayout& layout) { return layout.division.part > 0 ? 1.15 : 1; }

// Chunk `number`; an empty one if the number is -1 or the number of chunks. The first one is the
// largest, the last one the smallest.
RelayoutChunk chunk_of(const ChunkLayout& layout, std::int64_t number);

// The sum of a function of the number over all chunks: exact if it grows evenly over each run.
double sum_of_chunks(const ChunkLayout& layout, const std::function<double(std::int64_t)>& value);
// The steps of all chunks, by those of one chunk: runs become loops.
StepList steps_of_chunks(const ChunkLayout& layout,
                         const std::function<StepList(std::int64_t)>& steps_of);

// The choices of engines for the copies of a chunk, by its size. Chunks have at most two different
// sizes; each is estimated once.
class ChunkChoices {
 public:
  // problem: that of the copies, all images; workspace: bytes that the engines may use.
  // only: the name of the only engine to ask; "": all.
  ChunkChoices(const ConvolutionProblem& problem, const RelayoutCut& cut, std::size_t workspace,
               const InnerChoice& inner, std::string only = {})
      : problem_(problem), cut_(cut), grant_{std::move(only), workspace}, inner_(inner) {}

  double seconds(const RelayoutChunk& chunk) { return estimate(chunk).seconds; }
  std::size_t workspace(const RelayoutChunk& chunk) { return estimate(chunk).workspace; }
  const Proposal& proposal(const RelayoutChunk& chunk);

 private:
  struct Known {
    std::int64_t images, rows;
    ChoiceEstimate estimate;
    std::optional<Proposal> proposal{};
  };
  Known& known(const RelayoutChunk& chunk);
  const ChoiceEstimate& estimate(const RelayoutChunk& chunk) { return known(chunk).estimate; }

  ConvolutionProblem problem_;
  RelayoutCut cut_;
  Grant grant_;
  const InnerChoice& inner_;
  std::vector<Known> known_{};
};

// The description of a candidate's tile: which tensors are copied, how many rows of an image at a
// time if it is cut, and the kernel that computes the copies.
std::string relayout_tile(const RelayoutProblem& problem, const ChunkLayout& layout,
                          const std::vector<const char*>& copied, const Proposal& inner,
                          std::size_t budget);

// The places of the operands of chunk `number`, in the order of operands_of(problem.inner).
RelayoutPlaces places_of(const RelayoutProblem& problem, const ChunkLayout& layout,
                         std::int64_t number);

}  // namespace kiln
