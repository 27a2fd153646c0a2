// Rewrites of layers whose filters meet every pixel of x once, such as patch embeddings: channels
// last, stride and filter of equal size, no padding. Nothing is copied: the S pixels of C channels
// in a row of a patch are one pixel of S * C channels, and the R rows of a patch are R planes of
// depth. The engine with the best estimate for tensors seen so computes the layer.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "engines/rewrite/channels_last_copies.hpp"

namespace kiln {

// x is {N, S * C, R, P, Q}, w is {K, S * C, R, 1, 1} and y {N, K, 1, P, Q} in the same memory.
// Where a row of a patch is no multiple of 16 bytes, x is {N, S * C, H, Q} and w {K, S * C, R, 1}
// instead, which channels_last_copies can pad; its copies are such a layer of patches of one
// column. Layers whose pixels are a multiple of 16 bytes and that have strides of at most 8 are
// refused, because other engines take them as they lie.
std::variant<ConvolutionProblem, Refusal> patches_as_pixels(const ConvolutionProblem& problem);

class Patches : public RelayoutRewrite {
 public:
  bool takes_mixed_types() const override { return true; }

 protected:
  std::span<const RelayoutVariant> variants() const override;
  std::variant<Result, Refusal> estimate_or_build(const ConvolutionProblem& problem,
                                                  const InnerChoice& inner,
                                                  const RelayoutVariant& variant,
                                                  Extent extent) const override;
};

// Forward propagation and data gradients.
class PatchesNhwc final : public Patches {
 public:
  const char* name() const override { return "patches_nhwc"; }
  bool is_for(const Problem& problem) const override;
};

class WgradPatchesNhwc final : public Patches {
 public:
  const char* name() const override { return "wgrad_patches_nhwc"; }
  bool is_for(const Problem& problem) const override;
};

}  // namespace kiln
