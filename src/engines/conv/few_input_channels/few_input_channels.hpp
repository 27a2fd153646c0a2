// Forward propagation from a source with few channels (an image) on the tensor cores. The reduction
// runs along lines of the source; all filters of a tile stay in shared memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/source_lines.hpp"
#include "engines/engine.hpp"

namespace kiln {

// A tile of M rows (filters) x N pixels, laid on a problem
// (kernel_sources/conv/few_input_channels/tile.cuh).
struct FewInputChannelsTile {
  FragmentShape shape;
  std::int64_t rows = 0, columns = 0;    // rows and columns of output pixels in a band
  std::int64_t bands = 0;                // bands in an image
  SourceLines lines;                     // the source in shared memory
  std::int64_t run_words = 0, runs = 0;  // the reduction: `runs` lines of `run_words` words

  bool split = false;  // 3xTF32

  std::int64_t fragments() const;      // fragments (32 bytes) of the reduction
  std::int64_t shared_memory() const;  // bytes
};

class FewInputChannelsMmaEngine : public Engine {
 public:
  const char* name() const override { return "few_input_channels_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // For a problem that is not refused: the tiles that fit, laid on it. A candidate's kernel is an
  // index into them.
  std::vector<FewInputChannelsTile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                                          const DeviceDescription& device) const;
  // The proposal for one tile, whether or not the choice would take it.
  Proposal propose(FewInputChannelsTile tile, const ConvolutionProblem& problem,
                   const Gather& gather, const DeviceDescription& device) const;

 private:
  virtual Refusal products_refusal(const DeviceDescription& /*device*/) const { return {}; }
  virtual std::span<const FragmentShape> shapes(bool split) const;
  KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather,
                       const FewInputChannelsTile& tile) const;
};

// The same with wgmma on Hopper; pixels are operand A.
class FewInputChannelsWgmmaSwapEngine final : public FewInputChannelsMmaEngine {
 public:
  const char* name() const override { return "few_input_channels_wgmma_swap"; }

 private:
  Refusal products_refusal(const DeviceDescription& device) const override {
    return warpgroup_refusal(device);
  }
  std::span<const FragmentShape> shapes(bool split) const override;
};

// "96x128, 6x16 a thread, 128 threads, bands of 1x118"
std::string describe(const FewInputChannelsTile& tile);

}  // namespace kiln
