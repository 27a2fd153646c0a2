// Tensors of more than 2^31 elements. The address space is taken, but only a few pages are touched:
// the strides do the spreading.
#include <boost/test/unit_test.hpp>

#include "forward_case.hpp"

namespace {

using namespace test;

constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements

// Copies the elements of a small dense tensor to where `strides` spread them, or back.
template <class Copy>
void spread(const Operand& dense, const Dims& strides, const Copy& copy) {
  Operand wide = dense;
  wide.strides = strides;
  const auto bytes = static_cast<std::int64_t>(size_of(dense.type));
  for (std::int64_t i = 0; i < dense.count(); ++i)
    copy(wide.offset(i) * bytes, dense.offset(i) * bytes);
}

// One problem, dense and spread, must give the same y.
void check(const std::string& line, int dimension_of_x, int dimension_of_y, const char* engine) {
  const ConvolutionProblem dense = problem_of(line, KILN_DATA_HALF);
  ConvolutionProblem wide = dense;
  if (dimension_of_x >= 0) wide.x_strides[dimension_of_x] = beyond;
  if (dimension_of_y >= 0) wide.y_strides[dimension_of_y] = beyond;
  ForwardCase item(dense);
  const HostTensor want = item.expected();

  const std::shared_ptr<Device> on = device();
  const std::vector<Operand> far = operands_of(wide);
  const auto bytes = [](const Operand& operand) {
    return static_cast<std::size_t>(operand.span()) * size_of(operand.type);
  };
  const auto x_bytes = item["x"].bytes();
  void* const x = on->allocate(bytes(far[0]));
  void* const y = on->allocate(bytes(far[2]));
  const DeviceBuffer w(*on, item["w"].bytes());
  spread(item["x"].operand, wide.x_strides, [&](std::int64_t to, std::int64_t from) {
    on->copy_in(static_cast<std::byte*>(x) + to, x_bytes.data() + from, size_of(dense.type));
  });
  Plan plan(on, wide);
  plan.finalize({.only_engine = engine});
  void* const operands[] = {x, w.address(), y};
  plan.execute(operands, {}, nullptr);
  on->synchronize(nullptr);
  std::vector<std::byte> y_bytes(bytes(item.result().operand));
  spread(item.result().operand, wide.y_strides, [&](std::int64_t from, std::int64_t to) {
    on->copy_out(y_bytes.data() + to, static_cast<std::byte*>(y) + from, size_of(dense.type));
  });
  on->free(x);
  on->free(y);
  HostTensor got = item.result();
  got.read(y_bytes);
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
