// What an engine of convolutions is: a value that says which problems it takes, how its tiles lie
// on one, what they cost, and how the kernel of a tile is written. RecipeEngine does the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/recipe/seen.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The number of tiles of pixels (in the phase that has most, see gather_launch()), and of all
// tiles.
struct TileCounts {
  std::int64_t of_pixels = 0, all = 0;
  std::int64_t blocks = 0;  // persistent blocks, which take tiles in turn; 0: a block for each tile
};

// One way to launch a tile's kernel: `parts` blocks, a cluster, share the sums of a tile; `groups`
// such clusters leave theirs in the workspace, where a second step adds them up.
struct Sharing {
  int parts = 1, groups = 1;
};
struct Offer {
  Sharing sharing;
  double seconds = 0;         // estimated
  std::size_t workspace = 0;  // bytes
  double finish_seconds = 0;  // as in Candidate
};

// Tile: a struct with named fields, laid on a problem: it has all that the functions need to know
// of the tile, and nothing that depends on the batch size. All functions but refusal() are called
// only for problems that refusal() accepts.
template <class Tile>
struct Recipe {
  const char* name;              // of the engine, and of the kernel's entry point
  const char* file;              // "conv/halo/halo_nhwc_wgmma.cu"
  const char* entry = nullptr;   // null: the name
  bool filter_gradient = false;  // else forward passes and data gradients
  bool several_groups = false;   // only convolutions of several groups
  bool one_pixel = false;        // only of images of one pixel
  bool mixed_types = false;      // Engine::takes_mixed_types(), and so on
  bool moments = false;
  bool normalization_gradient = false;
  bool group_strides = false;
  // Why the choice does not take it, "" where it does; null: it takes all.
  const char* (*only_by_name)(const ConvolutionProblem& problem) = nullptr;

  Refusal (*refusal)(const Seen& seen);
  // The tiles that fit, laid on the problem at any batch size. A candidate's kernel is an index
  // into them.
  std::vector<Tile> (*lay)(const Seen& seen);
  const char* no_tile = nullptr;  // the refusal if there is none; null: there is always one
  // Why a tile cannot be launched so; null: only the number of blocks is looked at.
  Refusal (*tile_refusal)(const Tile& tile, const Seen& seen, const Sharing& sharing) = nullptr;
  // The refusal if there is no tile, where it has numbers: in place of no_tile.
  Refusal (*why_no_tile)(const Seen& seen) = nullptr;
  TileCounts (*count)(const Tile& tile, const Seen& seen);
  // The ways to launch it.
  std::vector<Offer> (*offers)(const Tile& tile, const Seen& seen, const TileCounts& tiles);

  std::string (*describe)(const Tile& tile);
  int (*threads)(const Tile& tile);
  // Bytes of a block; null: write() sets them.
  std::uint32_t (*shared_memory)(const Tile& tile, const Seen& seen) = nullptr;
  // Of every operand, in bytes; null: an element's, unless write() sets another.
  std::size_t (*alignment)(const Seen& seen) = nullptr;
  // Adds the constants, in the order in which the text has them, to a spec that has its names,
  // shared memory and alignment.
  void (*write)(KernelSpec& spec, const Tile& tile, const Seen& seen);
  // The launch; null: gather_launch() or wgrad_launch() of a block for each part of each tile.
  LaunchSpec (*launch)(const KernelSpec& spec, const Tile& tile, const Seen& seen,
                       const Sharing& sharing) = nullptr;
  // Adds the steps after the first, and the workspace; null: there are none.
  void (*finish)(Proposal& proposal, const Tile& tile, const Seen& seen,
                 const Sharing& sharing) = nullptr;
  ContinueSums continue_sums = nullptr;  // Engine::continue_sums()
};

}  // namespace kiln
