// Cuts images of a convolution into parts, rows of the result (planes of depth in three dimensions
// or, where a plane's copies do not fit either, rows of all planes), so that the copies of a part
// fit where those of an image do not. A part is a convolution without padding along the cut: its
// copy of the input holds the rows of zeros. All parts but the last of an image are therefore the
// same problem. Rows of all planes are cut evenly, so that also the last one is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/relayout/copies.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// What is computed at once: whole images, or rows of one image. Rows are those of the result, for
// filter gradients of dy, in the problem of the copies.
struct RelayoutChunk {
  std::int64_t first = 0, images = 0;
  std::int64_t row = 0, rows = 0;
};

struct RelayoutCut {
  std::size_t dim = 0;       // the dimension of space whose rows are counted
  std::int64_t rows = 1;     // of an image
  std::int64_t granule = 0;  // parts begin at multiples of so many rows; 0: images are never cut
  bool even = false;         // parts have equally many rows
  std::string refusal{};     // the reason, a clause, why they are not
};

// The cut along the outermost dimension that has several rows. inner: the problem of the copies,
// all images. copied, as_they_lie: the tensors of the caller, of which those that are not copied
// have to be at a multiple of 16 bytes in every part.
RelayoutCut cut_of(const ConvolutionProblem& inner, const std::vector<RelayoutTensor>& copied,
                   const std::vector<RelayoutTensor>& as_they_lie);
// The cut along the height of images that have depth too: a part has rows of all their planes.
RelayoutCut cut_inside_planes(const ConvolutionProblem& inner,
                              const std::vector<RelayoutTensor>& copied,
                              const std::vector<RelayoutTensor>& as_they_lie);

// The problem of a chunk's copies.
ConvolutionProblem part_of(const ConvolutionProblem& inner, const RelayoutCut& cut,
                           const RelayoutChunk& chunk);
// What a chunk needs of a tensor that the problem of the copies reads or writes.
RelayoutRange range_of(const ConvolutionProblem& inner, const RelayoutCut& cut,
                       const RelayoutTensor& tensor, const RelayoutChunk& chunk);

}  // namespace kiln
