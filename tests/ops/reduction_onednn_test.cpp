// The reference's reductions against oneDNN's.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <dnnl.hpp>
#include <random>

#include "reference/reference.hpp"

using namespace kiln;

namespace {

using Memory = dnnl::memory;

Memory::desc describe(const Tensor& tensor) {
  return {Memory::dims(tensor.dims.begin(), tensor.dims.begin() + tensor.rank),
          Memory::data_type::f32,
          Memory::dims(tensor.strides.begin(), tensor.strides.begin() + tensor.rank)};
}

dnnl::algorithm algorithm_of(kilnReduceTensorOp_t op) {
  switch (op) {
    case KILN_REDUCE_SUM: return dnnl::algorithm::reduction_sum;
    case KILN_REDUCE_MEAN: return dnnl::algorithm::reduction_mean;
    case KILN_REDUCE_MAX: return dnnl::algorithm::reduction_max;
    case KILN_REDUCE_MIN: return dnnl::algorithm::reduction_min;
    case KILN_REDUCE_NORM2: break;
  }
  return dnnl::algorithm::reduction_norm_lp_sum;  // with p = 2 and nothing added
}

void reduce(kilnReduceTensorOp_t op, const Tensor& a, std::vector<float>& from, const Tensor& c,
            std::vector<float>& to) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::reduction::primitive_desc description(engine, algorithm_of(op), describe(a),
                                                    describe(c), 2.0f, 0.0f);
#else
  const dnnl::reduction::primitive_desc description(
      dnnl::reduction::desc(algorithm_of(op), describe(a), describe(c), 2.0f, 0.0f), engine);
#endif
  dnnl::stream stream(engine);
  dnnl::reduction(description)
      .execute(stream, {{DNNL_ARG_SRC, Memory(describe(a), engine, from.data())},
                        {DNNL_ARG_DST, Memory(describe(c), engine, to.data())}});
  stream.wait();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reduction_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  std::mt19937 random(6);
  const auto among = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::uniform_real_distribution<float> uniform(-1, 1);
  int compared = 0;
  while (compared < 200) {
    Tensor a, c;
    a.rank = c.rank = static_cast<int>(among(3, 5));
    std::size_t count = 1, results = 1;
    for (int i = 0; i < a.rank; ++i) {
      a.dims[i] = among(1, 9);
      c.dims[i] = among(0, 1) == 1 ? a.dims[i] : 1;
      count *= static_cast<std::size_t>(a.dims[i]);
      results *= static_cast<std::size_t>(c.dims[i]);
    }
    if (a.dims == c.dims) continue;  // oneDNN wants something to reduce
    a.strides = dense_strides(KILN_TENSOR_NCHW, a.rank, a.dims);
    c.strides = dense_strides(KILN_TENSOR_NCHW, c.rank, c.dims);
    const auto op = static_cast<kilnReduceTensorOp_t>(compared++ % 5);
    std::vector<float> from(count), to(results);
    for (float& value : from) value = uniform(random);
    reduce(op, a, from, c, to);

    const ReductionProblem problem = make_reduction(op, a, c);
    std::vector<std::int64_t> indices(results);
    for (std::size_t i = 0; i < results; ++i) indices[i] = static_cast<std::int64_t>(i);
    const void* const memory[] = {from.data(), nullptr};
    const auto expected = reference::expect(problem, {}, memory, indices, 2);
    double worst = 0;
    for (std::size_t i = 0; i < results; ++i)
      worst = std::fmax(worst, std::fabs(to[i] - expected[i].value) /
                                   (expected[i].allowed + 0x1p-24 * std::fabs(expected[i].value)));
    BOOST_TEST(worst <= 1.0, to_line(problem) << ": " << worst << " times the error allowed");
  }
}

BOOST_AUTO_TEST_SUITE_END()
