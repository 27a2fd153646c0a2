// How a block's threads share operations that combine many elements into one: reductions, softmax.
// The host's side of kernel_sources/common/block_layout.cuh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/common/axes.hpp"

namespace kiln {

// The axes of one image, separated into those that are combined and those that are kept (at most
// four each), and the vectors in which they are read.
struct Combining {
  std::vector<Axis> kept, combined;
  bool inner_combined = false;  // vectors run along the last combined axis, else the last kept one
  int vector = 1;
  bool wide_index = false;   // counts of vectors need 64 bits
  bool wide_offset = false;  // offsets within an image need 64 bits

  std::int64_t kept_vectors() const;                         // of one image
  std::int64_t combined_vectors() const;                     // of one image
  int lanes() const { return inner_combined ? 1 : vector; }  // results that a thread holds
};

// `leading`: the tensor whose strides order the axes; `vectored`: how many tensors, from the first,
// are accessed in vectors; `most`: elements in 16 bytes.
Combining make_combining(const Dims& dims, const std::vector<Dims>& strides,
                         const std::array<bool, operand_rank>& combined, std::size_t leading,
                         std::size_t vectored, int most);
// The same of an image's joined axes (joined_axes); `batch`: the tensors' strides between images.
Combining make_combining(const std::vector<Axis>& axes, const std::vector<std::int64_t>& batch,
                         std::size_t vectored, int most);

struct BlockLayout {
  int tx = 1, ty = 1, groups = 1;
  int threads() const { return tx * ty * groups; }
  // Groups of results that a block computes, Combining::lanes() results each.
  int results() const { return tx * groups; }
  // Bytes of shared memory for one exchange between the threads of a result (COMBINE_BYTES).
  std::uint32_t combine_bytes(int lanes, DataType compute) const;
};

// VECTOR, INNER, KEPT, COMBINED, TX, TY, GROUPS, the types of indices and offsets, and the divisors
// DIV_K123, DIV_K23, DIV_K3, DIV_C123... `steps`: vectors of a row that a thread may count past its
// end.
void add_combining_constants(std::vector<Constant>& constants, const Combining& combining,
                             const BlockLayout& layout, int steps);

// PREFIX_STRIDE_N, K0 to K3 and C0 to C3 of one tensor, those of the walked axis a vector apart.
void add_combining_strides(std::vector<Constant>& constants, const Combining& combining,
                           const std::string& prefix, std::size_t tensor, std::int64_t of_images);

// The smallest power of two that is at least `value`, and the largest that is at most `value`; 1 if
// value < 1.
int power_at_least(std::int64_t value);
int power_at_most(std::int64_t value);

}  // namespace kiln
