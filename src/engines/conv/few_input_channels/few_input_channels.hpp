// Forward propagation from a source of few channels (an image) on the tensor cores: the reduction
// runs along lines of the source, and the filters stay in shared memory, whole.
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

// Rows M (filters) x pixels N, on a problem (kernel_sources/conv/few_input_channels/tile.cuh).
struct FewInputChannelsTile {
  FragmentShape shape;
  std::int64_t rows = 0, columns = 0;    // of pixels, in a band
  std::int64_t bands = 0;                // of an image
  SourceLines lines;                     // of the source
  std::int64_t run_words = 0, runs = 0;  // of the reduction

  bool split = false;  // f32 in three products

  std::int64_t fragments() const;      // of 32 bytes of the reduction
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

  // Of a problem that it does not refuse: the tiles that fit, as they lie on it. A candidate's
  // kernel is the number of one of them.
  std::vector<FewInputChannelsTile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                                          const DeviceDescription& device) const;
  // The proposal of one tile, whichever would be chosen.
  Proposal propose(FewInputChannelsTile tile, const ConvolutionProblem& problem,
                   const Gather& gather, const DeviceDescription& device) const;

 private:
  virtual std::optional<Refusal> products_refusal(const DeviceDescription& /*device*/) const {
    return std::nullopt;
  }
  virtual std::span<const FragmentShape> shapes(bool split) const;
  KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather,
                       const FewInputChannelsTile& tile) const;
};

// The same on Hopper's warpgroup products.
class FewInputChannelsWgmmaSwapEngine final : public FewInputChannelsMmaEngine {
 public:
  const char* name() const override { return "few_input_channels_wgmma_swap"; }

 private:
  std::optional<Refusal> products_refusal(const DeviceDescription& device) const override {
    return warpgroup_refusal(device);
  }
  std::span<const FragmentShape> shapes(bool split) const override;
};

// "96x128, 6x16 a thread, 128 threads, bands of 1x118"
std::string describe(const FewInputChannelsTile& tile);

}  // namespace kiln
