// The reference's reductions against oneDNN's.
#include "onednn.hpp"

using namespace kiln;

namespace {

using onednn::layout;
using onednn::wrap;

dnnl::algorithm algorithm_of(kilnReduceTensorOp_t op) {
  switch (op) {
    case KILN_REDUCE_SUM: return dnnl::algorithm::reduction_sum;
    case KILN_REDUCE_MEAN: return dnnl::algorithm::reduction_mean;
    case KILN_REDUCE_MAX: return dnnl::algorithm::reduction_max;
    case KILN_REDUCE_MIN: return dnnl::algorithm::reduction_min;
    case KILN_REDUCE_MUL: return dnnl::algorithm::reduction_mul;
    default: return dnnl::algorithm::reduction_norm_lp_sum;  // with p = 1 or 2, and eps = 0
  }
}

// All reductions that oneDNN has.
constexpr kilnReduceTensorOp_t operations[] = {
    KILN_REDUCE_SUM, KILN_REDUCE_MEAN,  KILN_REDUCE_MAX,  KILN_REDUCE_MIN,
    KILN_REDUCE_MUL, KILN_REDUCE_NORM1, KILN_REDUCE_NORM2};

}  // namespace

BOOST_AUTO_TEST_SUITE(reduction_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  onednn::Random random(6);
  int compared = 0;
  while (compared < 200) {
    Tensor a, c;
    a.rank = c.rank = static_cast<int>(random.among(1, 5));
    std::size_t count = 1, results = 1;
    for (int i = 0; i < a.rank; ++i) {
      a.dims[i] = random.among(1, 9);
      c.dims[i] = random.among(0, 1) == 1 ? a.dims[i] : 1;
      count *= static_cast<std::size_t>(a.dims[i]);
      results *= static_cast<std::size_t>(c.dims[i]);
    }
    if (a.dims == c.dims) continue;  // oneDNN requires a dimension to reduce
    a.strides = dense_strides(KILN_TENSOR_NCHW, a.rank, a.dims);
    c.strides = dense_strides(KILN_TENSOR_NCHW, c.rank, c.dims);
    const kilnReduceTensorOp_t op = operations[compared++ % std::size(operations)];
    const float power = op == KILN_REDUCE_NORM1 ? 1 : 2;
    std::vector<float> from = random.values(count), to(results);
    // The last two arguments are the power of the norm, and eps, which is added to it.
    const auto description = onednn::describe_forward<dnnl::reduction>(algorithm_of(op), layout(a),
                                                                       layout(c), power, 0.0f);
    onednn::execute(dnnl::reduction(description),
                    {{DNNL_ARG_SRC, wrap(layout(a), from)}, {DNNL_ARG_DST, wrap(layout(c), to)}});
    onednn::compare(make_reduction(op, a, c), {from.data()}, to);
  }
}

BOOST_AUTO_TEST_SUITE_END()
