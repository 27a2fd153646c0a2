#include "problem/tensor/fold.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace kiln {
namespace {

// A dimension of all tensors, or several that were joined.
struct Joint {
  std::int64_t size = 1;
  bool batch = false;                 // it contains the batch
  std::vector<std::int64_t> strides;  // of each tensor
  std::vector<bool> present;          // false: broadcast, the tensor's own size is 1

  // Whether this dimension continues `inner` without a gap in every tensor, so that they can be
  // joined.
  bool continues(const Joint& inner) const {
    if (present != inner.present) return false;
    for (std::size_t t = 0; t < strides.size(); ++t)
      if (present[t] && strides[t] != inner.strides[t] * inner.size) return false;
    return true;
  }
};

Joint dimension(const std::vector<Tensor>& tensors, std::size_t leading, int i) {
  Joint joint{tensors[leading].dims[i], i == 0, {}, {}};
  for (const Tensor& tensor : tensors) {
    joint.strides.push_back(tensor.strides[i]);
    joint.present.push_back(tensor.dims[i] == joint.size);
  }
  return joint;
}

// The dimensions from `first` on, outermost first.
std::vector<Joint> joined(const std::vector<Tensor>& tensors, std::size_t leading, int first) {
  std::vector<Joint> all;
  for (int i = first; i < tensors[leading].rank; ++i)
    if (tensors[leading].dims[i] != 1) all.push_back(dimension(tensors, leading, i));
  std::stable_sort(all.begin(), all.end(), [&](const Joint& a, const Joint& b) {
    return a.strides[leading] > b.strides[leading];
  });
  std::vector<Joint> out;
  for (const Joint& joint : all) {
    if (out.empty() || !out.back().continues(joint)) {
      out.push_back(joint);
      continue;
    }
    Joint& outer = out.back();
    outer.size *= joint.size;
    outer.batch = outer.batch || joint.batch;
    outer.strides = joint.strides;
  }
  return out;
}

}  // namespace

std::vector<Tensor> folded(const std::vector<Tensor>& tensors, std::size_t leading, Fold fold) {
  const int rank = tensors[leading].rank;
  if (rank <= operand_rank) return tensors;
  const int kept = fold == Fold::space ? 2 : 1;
  std::vector<Joint> dims;
  for (int i = 0; i < kept; ++i) dims.push_back(dimension(tensors, leading, i));
  for (const Joint& joint : joined(tensors, leading, kept)) dims.push_back(joint);
  if (dims.size() > operand_rank && fold == Fold::any) {
    // The kernel's batch may be another dimension than the caller's, but an empty batch stays
    // empty.
    dims = joined(tensors, leading, 0);
    const auto batch =
        std::find_if(dims.begin(), dims.end(), [](const Joint& joint) { return joint.batch; });
    if (batch != dims.end()) std::rotate(dims.begin(), batch, batch + 1);
  }
  if (dims.size() > operand_rank)
    fail(KILN_STATUS_NOT_SUPPORTED, "the tensors have ", rank, " dimensions, of which ",
         dims.size(),
         " are left once those that are contiguous with each other in every tensor are joined; ",
         "expected at most ", operand_rank);

  std::vector<Tensor> out = tensors;
  for (std::size_t t = 0; t < out.size(); ++t) {
    out[t].rank = static_cast<int>(dims.size());
    out[t].dims = out[t].strides = {};
    for (std::size_t i = 0; i < dims.size(); ++i) {
      out[t].dims[i] = dims[i].present[t] ? dims[i].size : 1;
      out[t].strides[i] = dims[i].strides[t];
    }
  }
  return out;
}

}  // namespace kiln
