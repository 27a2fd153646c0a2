// Tensors of more than 2^31 elements. The address space is taken, but only a few pages are touched:
// the strides do the spreading.
#include <boost/test/unit_test.hpp>

#include "forward_case.hpp"

namespace {

using namespace test;

constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements

// Copies the elements of a small dense tensor to where `strides` spread them, or back.
template <class Copy>
void spread(const ConvolutionProblem& dense, const Sizes& sizes, const Strides& dense_strides,
            const Strides& strides, const Copy& copy) {
  for (std::int64_t i = 0; i < count_of(sizes); ++i)
    copy(offset_of(i, sizes, strides) * static_cast<std::int64_t>(size_of(dense.type)),
         offset_of(i, sizes, dense_strides) * static_cast<std::int64_t>(size_of(dense.type)));
}

// One problem, dense and spread, must give the same y.
void check(const std::string& line, int dimension_of_x, int dimension_of_y, const char* engine) {
  const ConvolutionProblem dense = problem_of(line, KILN_DATA_HALF);
  ConvolutionProblem wide = dense;
  if (dimension_of_x >= 0) wide.x_strides[dimension_of_x] = beyond;
  if (dimension_of_y >= 0) wide.y_strides[dimension_of_y] = beyond;
  const ForwardCase item(dense);
  const HostTensor want = item.expected();

  const std::shared_ptr<Device> on = device();
  const Sizes xs = x_sizes(dense), ys = y_sizes(dense);
  const auto bytes = [&](const Sizes& sizes, const Strides& strides) {
    return span_of(sizes, strides) * size_of(dense.type);
  };
  const auto x_bytes = item.x.bytes(dense.type);
  void* const x = on->allocate(bytes(xs, wide.x_strides));
  void* const y = on->allocate(bytes(ys, wide.y_strides));
  const DeviceBuffer w(*on, item.w.bytes(dense.type));
  spread(dense, xs, dense.x_strides, wide.x_strides, [&](std::int64_t far, std::int64_t near) {
    on->copy_in(static_cast<std::byte*>(x) + far, x_bytes.data() + near, size_of(dense.type));
  });
  Plan plan(on, wide);
  plan.finalize({.only_engine = engine});
  void* const operands[] = {x, w.address(), y};
  plan.execute(operands, 1, 0, nullptr);
  on->synchronize(nullptr);
  std::vector<std::byte> y_bytes(bytes(ys, dense.y_strides));
  spread(dense, ys, dense.y_strides, wide.y_strides, [&](std::int64_t far, std::int64_t near) {
    on->copy_out(y_bytes.data() + near, static_cast<std::byte*>(y) + far, size_of(dense.type));
  });
  on->free(x);
  on->free(y);
  HostTensor got = item.y;
  got.read(y_bytes, dense.type);
  const std::string fault = difference(got, want);
  BOOST_TEST(fault.empty(), line << " x " << dimension_of_x << " y " << dimension_of_y << " "
                                 << engine << ": " << fault);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wide_offsets)

BOOST_AUTO_TEST_CASE(batches_channels_and_rows_far_apart) {
  for (const char* engine : {"implicit_gemm_fma", "direct"}) {
    check("mb2ic2ih5iw6oc8kh3ph1", 0, -1, engine);
    check("mb1ic2ih5iw6oc8kh3ph1", 1, -1, engine);
    check("mb1ic3ih2iw6oc8kh1kw3ph0pw1", 3, -1, engine);
    check("mb2ic2ih5iw6oc4kh3ph1", 0, 0, engine);
  }
}

BOOST_AUTO_TEST_SUITE_END()
