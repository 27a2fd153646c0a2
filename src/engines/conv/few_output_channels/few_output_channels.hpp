// Forward propagation to few channels, and the data gradient of an image, on the tensor cores: the
// rows of the product are places of the source, its columns are pairs of an output channel and a
// tap of the filter's row, and the taps of a row are added up at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Places M x pairs N, on a problem (kernel_sources/conv/few_output_channels/tile.cuh).
struct FewRowsTile {
  FragmentShape shape;
  std::int64_t element = 0;                 // bytes
  std::int64_t copy_bytes = 0;              // of the source: 16, or an element
  std::int64_t chunk_steps = 0;             // of 32 bytes of channels, in a stage
  std::int64_t taps = 0, taps_in_row = 0;   // rows of taps; taps of one
  std::int64_t pairs = 0;                   // output channels times taps of a row
  std::int64_t rows = 0, columns = 0;       // of pixels; of the source
  std::int64_t tiles = 0;                   // of rows, in an image
  std::int64_t strips = 0, strip_step = 0;  // of columns, and from one to the next
  std::int64_t halo_rows = 0;
  std::int64_t exchange_rows = 0;   // output channels whose sums go out together
  std::int64_t load_fragments = 0;  // from one share of a stage's copies to the next
  double live_taps = 0;  // of a tile, on average: rows of taps that some pixel has inside
  bool planes = false;   // of the filter, for products of warpgroups
  bool split = false;    // f32 in three products

  std::int64_t chunk_channels() const { return 32 * chunk_steps / element; }
  std::int64_t halo_pixels() const { return halo_rows * columns; }
  std::int64_t filter_bytes() const;
  std::int64_t halo_bytes() const;
  std::int64_t exchange_bytes(std::int64_t output_channels) const;
  std::int64_t stage_bytes() const;
  std::int64_t shared_memory() const;  // bytes
};

class FewRowsEngine : public Engine {
 public:
  const char* name() const override { return "few_output_channels_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // Of a problem that it does not refuse: the tiles that fit, as they lie on it. A candidate's
  // kernel is the number of one of them.
  std::vector<FewRowsTile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device) const;
  // The proposal of one tile, whichever would be chosen.
  Proposal propose(const FewRowsTile& tile, const ConvolutionProblem& problem, const Gather& gather,
                   const DeviceDescription& device) const;

 private:
  virtual bool by_warpgroups() const { return false; }
  // Why products that the tensor cores have are not for the engine; "" if they are.
  virtual std::string products_refusal(const ConvolutionProblem& /*problem*/,
                                       const DeviceDescription& /*device*/) const {
    return "";
  }
  KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather,
                       const FewRowsTile& tile) const;
};

// The same on Hopper's warpgroup products.
class FewRowsWgmmaEngine final : public FewRowsEngine {
 public:
  const char* name() const override { return "few_output_channels_wgmma"; }

 private:
  bool by_warpgroups() const override { return true; }
  std::string products_refusal(const ConvolutionProblem& problem,
                               const DeviceDescription& device) const override;
};

// "512x40, 8x10 a thread, 256 threads, places 4x120 of 8 channels"
std::string describe(const FewRowsTile& tile);

}  // namespace kiln
