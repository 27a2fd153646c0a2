// Activations and their derivatives over the whole range of every type: the pointwise kernels, the
// epilogue of a convolution and the reference, against values computed by mpmath.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "operation_case.hpp"

BOOST_AUTO_TEST_SUITE(activation_values)

namespace {

using namespace test;

// An argument, the function's value, and the derivative as a function of the argument or of y.
struct Row {
  double x;
  long double f, slope;
};
struct Group {
  Activation activation;
  std::span<const Row> rows;
};
constexpr long double none = std::numeric_limits<long double>::quiet_NaN();
constexpr long double most = std::numeric_limits<long double>::infinity();
#include "ops/values/activations.inc"

bool is_full() { return std::getenv("KILN_TEST_FULL") != nullptr; }

Tensor line_of(DataType type, std::size_t count) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = {1, 1, 1, static_cast<std::int64_t>(count)};
  out.strides = dense_strides(KILN_TENSOR_NCHW, 4, out.dims);
  return out;
}

bool exists_in(DataType type, double x) {
  return reference::round_to_format(x, reference::format_of(type)) == x &&
         std::fabs(x) <= reference::largest_of(type);
}

// The distance of `got` from `want` in units of the last place of `want`. An infinity counts as the
// number after the largest finite one.
double units_off(DataType type, double got, long double want) {
  const reference::Format format = reference::format_of(type);
  const int top = std::ilogb(reference::largest_of(type)) + 1;
  const long double beyond = std::ldexp(1.0L, top);
  const auto bounded = [&](long double v) { return std::fmin(std::fmax(v, -beyond), beyond); };
  if (std::isnan(got) || std::isnan(want))
    return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  const long double right = bounded(want);
  const int exponent = right == 0
                           ? format.min_exponent
                           : std::min(std::max(std::ilogb(right), format.min_exponent), top - 1);
  return static_cast<double>(std::fabs(bounded(got) - right) /
                             std::ldexp(1.0L, exponent - format.precision + 1));
}

// The bound that kiln/activation.h documents: 4 units; for 16 bits the nearest number or a neighbor
// of it.
double units_allowed(DataType type) { return size_of(type) == 2 ? 1.5 : 4; }

// The absolute error that is allowed where a derivative crosses zero.
long double allowed_at_zero(DataType type, const Activation& activation, double x) {
  if (!reference::gradient_crosses_zero(activation.mode) || x < -3 || x > -0.0625) return 0;
  const double size = std::fmax(1, std::fabs(x));
  return size * (type == KILN_DATA_DOUBLE ? 0x1p-51L : 0x1p-22L);
}

struct Worst {
  double units = 0;
  std::string text;
  void see(double off, double allowed, const Activation& activation, DataType type, double x,
           double got, long double want) {
    if (off <= allowed || off <= units) return;
    units = off;
    text = cat(name_of(activation.mode), " ", name_of(type), " at ", x, " is ", got, ", expected ",
               static_cast<double>(want), ", ", off, " units off");
  }
};

// Computes y from x, or dx from v and dy = 1, for all elements of a vector.
using Evaluate = std::vector<double> (*)(const Activation&, DataType, const std::vector<double>&);

std::vector<double> forward(const Activation& activation, DataType type,
                            const std::vector<double>& x) {
  const Tensor t = line_of(type, x.size());
  OperationCase item(make_activation_forward(activation, t, t));
  item.tensors[0].values = x;
  return item.run_plan().values;
}

std::vector<double> backward(const Activation& activation, DataType type,
                             const std::vector<double>& v) {
  const Tensor t = line_of(type, v.size());
  OperationCase item(make_activation_backward(activation, t, "saved", t, t));
  item.tensors[0].values = v;
  item.tensors[1].values.assign(v.size(), 1);
  return item.run_plan().values;
}

// The epilogue of a convolution with one filter that has a single weight, 1.
std::vector<double> fused(const Activation& activation, DataType type,
                          const std::vector<double>& x) {
  const Tensor t = line_of(type, x.size()), w = line_of(type, 1);
  ConvolutionSpec spec;
  spec.spatial = 2;
  spec.compute_type = compute_type(type);
  OperationCase item(
      make_convolution(spec, t, w, t, bias_activation_epilogue(nullptr, nullptr, activation)));
  item["x"].values = x;
  item["w"].values = {1};
  return item.run_plan("direct").values;
}

std::string fault_of(const Group& group, DataType type, Evaluate evaluate, bool slopes) {
  std::vector<double> x;
  std::vector<long double> want;
  for (const Row& row : group.rows) {
    const long double value = slopes ? row.slope : row.f;
    if (!exists_in(type, row.x) || std::isnan(value)) continue;
    x.push_back(row.x);
    want.push_back(value);
  }
  const std::vector<double> got = evaluate(group.activation, type, x);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double zone = slopes ? allowed_at_zero(type, group.activation, x[i]) : 0;
    if (std::fabs(got[i] - want[i]) <= zone) continue;
    worst.see(units_off(type, got[i], want[i]), units_allowed(type), group.activation, type, x[i],
              got[i], want[i]);
  }
  return worst.text;
}

// Whether f consists only of products, sums and comparisons, so that it is not approximated.
bool is_exact(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_IDENTITY:
    case KILN_ACTIVATION_RELU:
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_LEAKY_RELU:
    case KILN_ACTIVATION_SQUARE:
    case KILN_ACTIVATION_ABS:
    case KILN_ACTIVATION_HARD_SIGMOID:
    case KILN_ACTIVATION_CLIP:
    case KILN_ACTIVATION_LINEAR: return true;
    default: return false;
  }
}

// All types. Without KILN_TEST_FULL, f16 and bf16 take turns, and exact functions are tested with
// one type in turn.
std::vector<DataType> types_of(std::size_t turn, const Activation& activation) {
  if (is_full() || device_kind() == KILN_DEVICE_CUDA)
    return {std::begin(all_types), std::end(all_types)};
  if (is_exact(activation.mode)) return {all_types[turn % 4]};
  return {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, turn % 2 == 0 ? KILN_DATA_HALF : KILN_DATA_BFLOAT16};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_mode_has_values) {
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>())
    BOOST_TEST(
        std::ranges::count(groups, mode, [](const Group& g) { return g.activation.mode; }) > 0,
        "values/activations.py lacks " << name_of(mode));
}

BOOST_AUTO_TEST_CASE(the_reference) {
  for (const Group& group : groups) {
    const bool from_y = gradient_from_output(group.activation);
    Worst worst;
    for (const Row& row : group.rows) {
      const double f = reference::activate(group.activation, row.x);
      const double slope = from_y
                               ? reference::activation_gradient_from_output(group.activation, row.x)
                               : reference::activation_gradient(group.activation, row.x);
      if (!std::isnan(row.f))
        worst.see(units_off(KILN_DATA_DOUBLE, f, row.f), 1, group.activation, KILN_DATA_DOUBLE,
                  row.x, f, row.f);
      const long double zone = allowed_at_zero(KILN_DATA_DOUBLE, group.activation, row.x);
      if (std::isnan(row.slope) || std::fabs(slope - row.slope) <= zone) continue;
      worst.see(units_off(KILN_DATA_DOUBLE, slope, row.slope), 1.5, group.activation,
                KILN_DATA_DOUBLE, row.x, slope, row.slope);
    }
    BOOST_TEST(worst.text == "");
  }
}

BOOST_AUTO_TEST_CASE(forward_propagation) {
  for (std::size_t i = 0; i < std::size(groups); ++i)
    for (DataType type : types_of(i, groups[i].activation))
      BOOST_TEST(fault_of(groups[i], type, forward, false) == "");
}

BOOST_AUTO_TEST_CASE(gradients) {
  for (std::size_t i = 0; i < std::size(groups); ++i)
    for (DataType type : types_of(i + 1, groups[i].activation))
      BOOST_TEST(fault_of(groups[i], type, backward, true) == "");
}

BOOST_AUTO_TEST_CASE(fused_with_a_convolution) {
  const bool all = is_full() || device_kind() == KILN_DEVICE_CUDA;
  for (std::size_t i = 0; i < std::size(groups); ++i)
    for (DataType type : all_types)
      if (all || type == all_types[i % 4])
        BOOST_TEST(fault_of(groups[i], type, fused, false) == "");
}

// All numbers of 16-bit types, and a million numbers of other types, against the reference.
BOOST_AUTO_TEST_CASE(everywhere) {
  if (!is_full() && device_kind() == KILN_DEVICE_HOST) return;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> near(-24, 24), far(-800, 800);
  const auto arguments = [&](DataType type) {
    std::vector<double> x;
    const auto add = [&](double value) {
      if (std::isfinite(value)) x.push_back(value);
    };
    const int count = device_kind() == KILN_DEVICE_CUDA ? 1 << 19 : 1 << 16;
    for (int i = 0; i < count; ++i) {
      if (type == KILN_DATA_FLOAT) {
        add(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
        add(static_cast<float>(near(random)));
        add(static_cast<float>(far(random) / 7));
      } else if (type == KILN_DATA_DOUBLE) {
        add(std::bit_cast<double>(random()));
        add(near(random));
        add(far(random));
      }
    }
    for (unsigned bits = 0; size_of(type) == 2 && bits < 0x10000; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      add(type == KILN_DATA_HALF ? to_double(reference::Half{half})
                                 : to_double(reference::Bfloat16{half}));
    }
    return x;
  };
  for (DataType type : all_types) {
    const std::vector<double> x = arguments(type);
    for (const Group& group : groups) {
      const Activation& activation = group.activation;
      const bool from_y = gradient_from_output(activation);
      const std::vector<double> y = forward(activation, type, x),
                                dx = backward(activation, type, x);
      Worst worst;
      double units = 0, slope_units = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double f = reference::activate(activation, x[i]);
        const double slope = from_y ? reference::activation_gradient_from_output(activation, x[i])
                                    : reference::activation_gradient(activation, x[i]);
        // The reference computes in f64 and rounds its result, too.
        const double more = type == KILN_DATA_DOUBLE ? 0.5 : 0;
        const double off = units_off(type, y[i], f);
        units = std::fmax(units, off);
        worst.see(off, units_allowed(type) + more, activation, type, x[i], y[i], f);
        if (activation.mode == KILN_ACTIVATION_SIGMOID && !(x[i] >= 0 && x[i] <= 1)) continue;
        if (activation.mode == KILN_ACTIVATION_TANH && !(std::fabs(x[i]) <= 1)) continue;
        if (activation.mode == KILN_ACTIVATION_ELU && !(x[i] >= -activation.coefficient)) continue;
        if (std::fabs(dx[i] - slope) <= allowed_at_zero(type, activation, x[i])) continue;
        const double slope_off = units_off(type, dx[i], slope);
        slope_units = std::fmax(slope_units, slope_off);
        worst.see(slope_off, units_allowed(type) + more, activation, type, x[i], dx[i], slope);
      }
      BOOST_TEST(worst.text == "");
      BOOST_TEST_MESSAGE(name_of(activation.mode) << " " << name_of(type) << ": " << units
                                                  << " and " << slope_units << " units");
    }
  }
}

// f' at the corners of f has the value that kiln/activation.h documents, also where it is taken
// from y.
BOOST_AUTO_TEST_CASE(corners) {
  struct Corner {
    Activation activation;
    double v, slope;
  };
  const Corner list[] = {
      {{KILN_ACTIVATION_RELU}, 0, 0},
      {{KILN_ACTIVATION_CLIPPED_RELU, 6}, 0, 0},
      {{KILN_ACTIVATION_CLIPPED_RELU, 6}, 5.5, 1},
      {{KILN_ACTIVATION_CLIPPED_RELU, 6}, 6, 0},
      {{KILN_ACTIVATION_LEAKY_RELU, 0.25}, 0, 0.25},
      {{KILN_ACTIVATION_ELU, 0.75}, 0, 0.75},
      {{KILN_ACTIVATION_HARD_SWISH}, -3, 0},
      {{KILN_ACTIVATION_HARD_SWISH}, 3, 1},
      {{KILN_ACTIVATION_ABS}, 0, 0},
      {{KILN_ACTIVATION_ABS}, -2, -1},
      {{KILN_ACTIVATION_HARD_SIGMOID, 0.25, 0.5}, -2, 0},
      {{KILN_ACTIVATION_HARD_SIGMOID, 0.25, 0.5}, 1, 0.25},
      {{KILN_ACTIVATION_HARD_SIGMOID, 0.25, 0.5}, 2, 0},
      {{KILN_ACTIVATION_CLIP, -1, 2}, -1, 0},
      {{KILN_ACTIVATION_CLIP, -1, 2}, 1.5, 1},
      {{KILN_ACTIVATION_CLIP, -1, 2}, 2, 0},
      {{KILN_ACTIVATION_CLIP, -HUGE_VAL, 2}, -1e4, 1},
      {{KILN_ACTIVATION_LOG}, 0, HUGE_VAL},
      {{KILN_ACTIVATION_SQRT}, 0, HUGE_VAL},
      {{KILN_ACTIVATION_SQUARE}, 0, 0},
      {{KILN_ACTIVATION_POW, 3, 0}, 2, 0},
      {{KILN_ACTIVATION_POW, 3, 1}, 0, 3},
      {{KILN_ACTIVATION_LINEAR, 3, 1}, 0, 3},
  };
  for (const Corner& corner : list) {
    const double got = backward(corner.activation, KILN_DATA_FLOAT, {corner.v})[0];
    BOOST_TEST(got == corner.slope, name_of(corner.activation.mode)
                                        << " at " << corner.v << " gave " << got);
    const double wanted =
        gradient_from_output(corner.activation)
            ? reference::activation_gradient_from_output(corner.activation, corner.v)
            : reference::activation_gradient(corner.activation, corner.v);
    BOOST_TEST(wanted == corner.slope);
  }
}

// If y's type cannot represent a bound, the comparison uses the value that y was rounded to.
BOOST_AUTO_TEST_CASE(bounds_as_y_has_them) {
  const Activation list[] = {{KILN_ACTIVATION_CLIPPED_RELU, 0.1},
                             {KILN_ACTIVATION_CLIP, -0.3, 0.1}};
  for (const Activation& activation : list)
    for (DataType type : all_types) {
      const std::vector<double> y = forward(activation, type, {5, -5, 0.0625});
      const std::vector<double> dx = backward(activation, type, y);
      BOOST_TEST(dx[0] == 0);
      BOOST_TEST(dx[1] == 0);
      BOOST_TEST(dx[2] == 1);
    }
}

// At an infinity, a function and its derivative have their limits.
BOOST_AUTO_TEST_CASE(infinities) {
  struct Limits {
    Activation activation;
    double above, below, slope_above, slope_below;
  };
  const double inf = HUGE_VAL, nan = std::nan("");
  const Limits list[] = {
      {{KILN_ACTIVATION_GELU_ERF}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_GELU_TANH}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_SILU}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_MISH}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_HARD_SWISH}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_SOFTPLUS}, inf, 0, 1, 0},
      {{KILN_ACTIVATION_ABS}, inf, inf, 1, -1},
      {{KILN_ACTIVATION_LOG}, inf, nan, 0, 0},
      {{KILN_ACTIVATION_SQUARE}, inf, inf, inf, -inf},
      {{KILN_ACTIVATION_POW, 1, 3}, inf, -inf, inf, inf},
      {{KILN_ACTIVATION_POW, 1, -2}, 0, 0, 0, 0},
      {{KILN_ACTIVATION_HARD_SIGMOID, 0.25, 0.5}, 1, 0, 0, 0},
  };
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (const Limits& limits : list)
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_DOUBLE}) {
      if (type == KILN_DATA_DOUBLE && !is_full()) continue;
      const std::vector<double> y = forward(limits.activation, type, {inf, -inf, nan});
      const std::vector<double> slope = backward(limits.activation, type, {inf, -inf, nan});
      const auto name = cat(name_of(limits.activation.mode), " ", name_of(type));
      BOOST_TEST(same(y[0], limits.above), name << " gave " << y[0]);
      BOOST_TEST(same(y[1], limits.below), name << " gave " << y[1]);
      BOOST_TEST(same(slope[0], limits.slope_above), name << " gave " << slope[0]);
      BOOST_TEST(same(slope[1], limits.slope_below), name << " gave " << slope[1]);
      BOOST_TEST(std::isnan(y[2]));
      BOOST_TEST(std::isnan(slope[2]));
      BOOST_TEST(same(reference::activate(limits.activation, -inf), limits.below));
      BOOST_TEST(same(reference::activation_gradient(limits.activation, -inf), limits.slope_below));
      BOOST_TEST(same(reference::activation_gradient(limits.activation, inf), limits.slope_above));
    }
}

BOOST_AUTO_TEST_SUITE_END()
