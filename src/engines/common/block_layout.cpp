#include "engines/common/block_layout.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

std::int64_t product(const std::vector<Axis>& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// Whether vectors of `count` elements along the innermost axis are aligned to their size
// everywhere.
bool vectors_fit(const std::vector<Axis>& axes, const std::vector<std::int64_t>& batch,
                 std::size_t vectored, int count) {
  if (axes.empty() || axes.back().size % count != 0) return false;
  for (std::size_t tensor = 0; tensor < vectored; ++tensor) {
    if (axes.back().strides[tensor] != 1 || batch[tensor] % count != 0) return false;
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      if (axes[i].strides[tensor] % count != 0) return false;
  }
  return true;
}

// Elements that one image of the widest tensor spans.
std::int64_t widest_image(const std::vector<Axis>& axes, std::size_t tensors) {
  std::int64_t widest = 0;
  for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
    std::int64_t span = 1;
    for (const Axis& axis : axes) span += (axis.size - 1) * axis.strides[tensor];
    widest = std::max(widest, span);
  }
  return widest;
}

}  // namespace

std::int64_t Combining::kept_vectors() const {
  return product(kept) / (inner_combined ? 1 : vector);
}
std::int64_t Combining::combined_vectors() const {
  return product(combined) / (inner_combined ? vector : 1);
}

Combining make_combining(const Dims& dims, const std::vector<Dims>& strides,
                         const std::array<bool, operand_rank>& combined, std::size_t leading,
                         std::size_t vectored, int most) {
  std::vector<std::int64_t> batch;
  for (const Dims& tensor : strides) batch.push_back(tensor[0]);
  return make_combining(image_axes(dims, strides, leading, combined), batch, vectored, most);
}

Combining make_combining(const std::vector<Axis>& axes, const std::vector<std::int64_t>& batch,
                         std::size_t vectored, int most) {
  Combining out;
  out.vector = most;
  while (out.vector > 1 && !vectors_fit(axes, batch, vectored, out.vector)) out.vector /= 2;
  out.inner_combined = !axes.empty() && axes.back().reduced;
  for (const Axis& axis : axes) (axis.reduced ? out.combined : out.kept).push_back(axis);
  // Indices may run past the end by a block's and an unrolled loop's steps.
  constexpr std::int64_t slack = 1 << 20;
  out.wide_index = std::max(out.kept_vectors(), out.combined_vectors()) + slack > limit32;
  out.wide_offset = widest_image(axes, batch.size()) > limit32 / 4 - slack;
  return out;
}

std::uint32_t BlockLayout::combine_bytes(int lanes, DataType compute) const {
  if (tx * ty <= 32) return 0;  // threads of one warp exchange by shuffles
  return static_cast<std::uint32_t>(threads() / 32 * tx * lanes) *
         static_cast<std::uint32_t>(size_of(compute));
}

void add_combining_constants(std::vector<Constant>& constants, const Combining& combining,
                             const BlockLayout& layout, int steps) {
  const auto add = [&](std::string name, auto value) {
    constants.push_back({std::move(name), value, ""});
  };
  add("VECTOR", std::int64_t{combining.vector});
  add("INNER", combining.inner_combined);
  add("KEPT", combining.kept_vectors());
  add("COMBINED", combining.combined_vectors());
  add("TX", std::int64_t{layout.tx});
  add("TY", std::int64_t{layout.ty});
  add("GROUPS", std::int64_t{layout.groups});
  add("index_t", TypeName{combining.wide_index ? "unsigned long long" : "unsigned"});
  add("offset_t", TypeName{combining.wide_offset ? "long long" : "int"});
  add("KEPT_AXES", static_cast<std::int64_t>(combining.kept.size()));
  add("COMBINED_AXES", static_cast<std::int64_t>(combining.combined.size()));
  const auto add_divisors = [&](const char* prefix, const std::vector<Axis>& present, int last) {
    const std::vector<Axis> axes = padded(present, 4);
    const std::int64_t sizes[] = {axes[1].size, axes[2].size, axes[3].size / last};
    const std::int64_t bound =
        axes[0].size * sizes[0] * sizes[1] * sizes[2] + std::int64_t{layout.threads()} * steps;
    const auto divisor = [&](const char* name, std::int64_t value) {
      if (combining.wide_index)
        add(cat("DIV_", prefix, name), make_wide_magic(static_cast<std::uint64_t>(value)));
      else
        add(cat("DIV_", prefix, name),
            make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(bound)));
    };
    divisor("123", sizes[0] * sizes[1] * sizes[2]);
    divisor("23", sizes[1] * sizes[2]);
    divisor("3", sizes[2]);
  };
  add_divisors("K", combining.kept, combining.lanes());
  add_divisors("C", combining.combined, combining.inner_combined ? combining.vector : 1);
}

void add_combining_strides(std::vector<Constant>& constants, const Combining& combining,
                           const std::string& prefix, std::size_t tensor, std::int64_t of_images) {
  constants.push_back({cat(prefix, "_STRIDE_N"), of_images, ""});
  const auto add = [&](const char* kind, const std::vector<Axis>& present, int last) {
    const std::vector<Axis> axes = padded(present, 4);
    for (std::size_t i = 0; i < axes.size(); ++i)
      constants.push_back(
          {cat(prefix, "_STRIDE_", kind, i),
           axes[i].strides.empty() ? 0 : axes[i].strides[tensor] * (i == 3 ? last : 1), ""});
  };
  add("K", combining.kept, combining.lanes());
  add("C", combining.combined, combining.inner_combined ? combining.vector : 1);
}

int power_at_least(std::int64_t value) {
  int power = 1;
  while (power < value && power < (1 << 30)) power *= 2;
  return power;
}
int power_at_most(std::int64_t value) {
  int power = 1;
  while (std::int64_t{power} * 2 <= value && power < (1 << 30)) power *= 2;
  return power;
}

}  // namespace kiln
