#include "proof/random_lines.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace proof {
namespace {

using namespace kiln;

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}

  // 0 to count - 1.
  std::uint64_t below(std::uint64_t count) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % count;
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class Value, std::size_t count>
  Value of(const Value (&values)[count]) {
    return values[below(count)];
  }

 private:
  std::uint64_t state_;
};

constexpr std::string_view types[] = {"f32", "f32", "f16", "f16", "bf16", "f64"};
constexpr std::string_view activations[] = {"relu",       "silu",         "gelu_erf",
                                            "gelu_tanh",  "tanh",         "sigmoid",
                                            "leaky_relu", "clipped_relu", "hard_swish"};
constexpr std::string_view layouts[] = {"nchw", "nhwc"};
constexpr std::string_view passes[] = {"fwd", "dgrad", "wgrad"}, directions[] = {"fwd", "bwd"};

// A line that is being written. Calls are chained, because arguments of one call would draw their
// random numbers in an order that each compiler chooses.
class Line {
 public:
  explicit Line(std::string_view command) : text_(cat(command, " ")) {}
  Line& flag(std::string_view name, std::string_view value) {
    text_ += cat("--", name, " ", value, " ");
    return *this;
  }
  Line& flag(std::string_view name) {
    text_ += cat("--", name, " ");
    return *this;
  }
  Line& entry(std::string_view name, std::int64_t value) {
    text_ += cat(name, value);
    return *this;
  }
  std::string end(std::string_view rest) const { return text_ + std::string(rest); }

 private:
  std::string text_;
};

// One spatial dimension of a convolution or a pooling.
struct Axis {
  std::int64_t in, filter, stride, dilation, pad;
  std::int64_t out() const { return (in + 2 * pad - (filter - 1) * dilation - 1) / stride + 1; }
};

// largest: the most places of the input; taps: the largest filter.
Axis random_axis(Random& random, std::int64_t largest, std::int64_t taps) {
  constexpr std::int64_t filters[] = {1, 1, 3, 3, 3, 5, 7, 2, 4, 9, 11, 31};
  constexpr std::int64_t places[] = {1, 5, 7, 8, 13, 14, 17, 28, 31, 32, 56, 57, 112, 224, 1000};
  constexpr std::int64_t steps[] = {1, 1, 1, 2, 2, 3, 4}, gaps[] = {1, 1, 1, 1, 2, 3};
  Axis axis{};
  axis.filter = std::min(random.of(filters), taps);
  axis.stride = random.of(steps);
  axis.dilation = random.of(gaps);
  const std::int64_t reach = (axis.filter - 1) * axis.dilation + 1;
  axis.pad = random.one_in(3) ? 0 : reach / 2;
  axis.in = std::max(std::min(random.of(places), largest), reach - 2 * axis.pad);
  return axis;
}

// The axes of a problem, outermost first, and their entries in benchdnn's notation.
struct Space {
  std::vector<Axis> axes;
  std::string entries() const {
    constexpr std::string_view letters = "dhw";
    std::string text;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const char letter = letters[3 - axes.size() + i];
      text +=
          cat("i", letter, axes[i].in, "o", letter, axes[i].out(), "k", letter, axes[i].filter, "s",
              letter, axes[i].stride, "p", letter, axes[i].pad, "d", letter, axes[i].dilation - 1);
    }
    return text;
  }
};

// Most have two dimensions, and the same along both.
Space random_space(Random& random, std::int64_t largest, std::int64_t taps) {
  constexpr std::size_t ranks[] = {1, 2, 2, 2, 2, 2, 2, 3};
  const std::size_t rank = random.of(ranks);
  if (rank == 3) {
    largest = std::min<std::int64_t>(largest, 32);
    taps = std::min<std::int64_t>(taps, 5);
  } else if (rank == 2) {
    largest = std::min<std::int64_t>(largest, 224);
  }
  Space space;
  for (std::size_t i = 0; i < rank; ++i)
    space.axes.push_back(i > 0 && !random.one_in(4) ? space.axes.back()
                                                    : random_axis(random, largest, taps));
  return space;
}

// The strides of a tensor that has `gap` elements behind each row or pixel.
std::string gap_strides(std::string_view layout, std::int64_t channels, const Space& space,
                        std::int64_t gap) {
  const bool last = layout == "nhwc";
  std::int64_t step = last ? channels + gap : 1;
  std::vector<std::int64_t> strides(space.axes.size());
  for (std::size_t i = space.axes.size(); i-- > 0;) {
    strides[i] = step;
    step *= space.axes[i].in + (!last && i + 1 == space.axes.size() ? gap : 0);
  }
  strides.insert(strides.begin(), last ? 1 : step);
  strides.insert(strides.begin(), last ? step : step * channels);
  return join(strides, ":");
}

struct Channels {
  std::int64_t groups, in, out;
};

Channels random_channels(Random& random) {
  constexpr std::int64_t counts[] = {1,  3,  4,   8,   16,  17,  24,  32,  48,  64,
                                     64, 96, 100, 128, 136, 192, 256, 384, 512, 1024};
  constexpr std::int64_t of_group[] = {2, 4, 8, 16, 32, 64}, group_counts[] = {2, 3, 4, 8, 16, 32};
  const std::int64_t channels = random.of(counts);
  switch (random.below(6)) {
    case 0: return {channels, channels, random.one_in(4) ? 2 * channels : channels};
    case 1: {
      const std::int64_t groups = random.of(group_counts);
      const std::int64_t in = groups * random.of(of_group);
      return {groups, in, random.one_in(3) ? groups * random.of(of_group) : in};
    }
    default: return {1, channels, random.one_in(3) ? channels : random.of(counts)};
  }
}

// Types of x, w and y: of 16 bits, the result may be f32.
std::string random_types(Random& random, std::string_view type, std::string_view pass) {
  if ((type != "f16" && type != "bf16") || !random.one_in(6)) return std::string(type);
  std::array<std::string_view, 3> each{type, type, type};
  each[pass == "dgrad" ? 0 : pass == "wgrad" ? 1 : 2] = "f32";
  return join(each, ":");
}

void add_epilogue(Random& random, Line& line) {
  if (random.one_in(2)) line.flag("bias");
  if (random.one_in(2)) line.flag("act", random.of(activations));
  if (random.one_in(4)) {
    line.flag("residual");
    if (random.one_in(3)) line.flag("residual-last");
  }
  if (random.one_in(8)) line.flag("moments");
}

std::string conv_line(Random& random) {
  constexpr std::int64_t batches[] = {0, 1, 1, 2, 3, 8, 16, 32, 32, 64, 100, 128, 256};
  constexpr std::string_view maths[] = {"strict", "tf32", "tf32", "default"};
  const std::string_view pass = random.of(passes), type = random.of(types),
                         layout = random.of(layouts);
  const Space space = random_space(random, 1000, 31);
  const Channels channels = random_channels(random);
  Line line("conv");
  line.flag("dir", pass).flag("dt", random_types(random, type, pass)).flag("layout", layout);
  if (type == "f32") line.flag("math", random.of(maths));
  if (random.one_in(4)) line.flag("mode", "conv");
  if (random.one_in(12)) line.flag("align", "8");
  if (random.one_in(16))
    line.flag("x-strides", gap_strides(layout, channels.in, space, random.one_in(2) ? 1 : 8));
  if (pass != "wgrad" && random.one_in(4)) add_epilogue(random, line);
  return line.entry("g", channels.groups)
      .entry("mb", random.of(batches))
      .entry("ic", channels.in)
      .entry("oc", channels.out)
      .end(space.entries());
}

std::string local_line(Random& random) {
  constexpr std::string_view orders[] = {"pkct", "pktc", "ptck", "kctp"};
  constexpr std::string_view biases[] = {"element", "channel"};
  constexpr std::int64_t counts[] = {1, 3, 8, 16, 32}, batches[] = {1, 2, 16, 33};
  const std::string_view pass = random.of(passes);
  const Space space = random_space(random, 17, 5);
  Line line("local");
  line.flag("dir", pass)
      .flag("dt", random.of(types))
      .flag("layout", random.of(layouts))
      .flag("weights", space.axes.size() < 3 && random.one_in(4) ? "npkct" : random.of(orders));
  if (pass == "fwd" && random.one_in(3)) line.flag("bias", random.of(biases));
  return line.entry("mb", random.of(batches))
      .entry("ic", random.of(counts))
      .entry("oc", random.of(counts))
      .end(space.entries());
}

std::string pool_line(Random& random) {
  constexpr std::string_view modes[] = {"max", "avg_include", "avg_exclude"};
  constexpr std::int64_t counts[] = {1, 3, 8, 64, 100, 256}, batches[] = {1, 8, 32, 128};
  const Space space = random_space(random, 224, 11);
  return Line("pool")
      .flag("dir", random.of(directions))
      .flag("dt", random.of(types))
      .flag("layout", random.of(layouts))
      .flag("mode", random.of(modes))
      .entry("mb", random.of(batches))
      .entry("ic", random.of(counts))
      .end(space.entries());
}

// Sizes of a tensor of `rank` dimensions.
std::vector<std::int64_t> random_sizes(Random& random, std::size_t rank) {
  constexpr std::int64_t batches[] = {1, 2, 8, 32, 128},
                         channels[] = {1, 3, 8, 64, 100, 1000, 4096},
                         places[] = {1, 3, 7, 14, 28, 56, 112};
  std::vector<std::int64_t> sizes{random.of(batches), random.of(channels)};
  while (sizes.size() < rank) sizes.push_back(random.of(places));
  return sizes;
}

// A shape of 2 to 5 dimensions.
std::string random_shape(Random& random) {
  return join(random_sizes(random, 2 + random.below(4)), "x");
}

std::string act_line(Random& random) {
  return Line("act")
      .flag("dir", random.of(directions))
      .flag("act", random.of(activations))
      .flag("dt", random.of(types))
      .flag("layout", random.of(layouts))
      .end(random_shape(random));
}

std::string softmax_line(Random& random) {
  constexpr std::string_view algorithms[] = {"accurate", "fast", "log"};
  constexpr std::string_view over[] = {"channels", "image"};
  return Line("softmax")
      .flag("dir", random.of(directions))
      .flag("algorithm", random.of(algorithms))
      .flag("over", random.of(over))
      .flag("dt", random.of(types))
      .flag("layout", random.of(layouts))
      .end(random_shape(random));
}

std::string norm_line(Random& random) {
  constexpr std::string_view kinds[] = {"fwd", "fwd", "inference", "apply", "bwd", "moments"};
  const std::string_view kind = random.of(kinds);
  Line line("norm");
  line.flag("dir", kind).flag("dt", random.of(types)).flag("layout", random.of(layouts));
  if (kind != "moments") {
    if (random.one_in(2)) line.flag("act", "relu");
    if (random.one_in(3)) line.flag("residual");
    if (random.one_in(4)) line.flag("no-affine");
  }
  std::vector<std::int64_t> sizes = random_sizes(random, 2 + random.below(4));
  sizes[0] = std::max<std::int64_t>(sizes[0], 2);  // training needs two elements of a channel
  return line.end(join(sizes, "x"));
}

std::string tensor_line(Random& random) {
  constexpr std::string_view binary[] = {"add", "sub", "mul", "div", "min", "max", "lt"};
  constexpr std::string_view reductions[] = {"reduce_sum",  "reduce_mean",  "reduce_max",
                                             "reduce_amax", "reduce_norm1", "reduce_norm2"};
  const std::vector<std::int64_t> sizes = random_sizes(random, 2 + random.below(4));
  std::vector<std::int64_t> small = sizes;
  for (std::int64_t& size : small)
    if (random.one_in(2)) size = 1;
  const std::string whole = join(sizes, "x"), part = join(small, "x");
  Line line("tensor");
  line.flag("dt", random.of(types));
  switch (random.below(4)) {
    case 0: return line.flag("op", "copy").flag("layout", "nchw:nhwc").end(whole);
    case 1:
      return line.flag("op", "copy").flag("layout", random.of(layouts)).end(cat(part, ":", whole));
    case 2:
      return line.flag("op", random.of(binary))
          .flag("layout", random.of(layouts))
          .end(cat(whole, ":", part, ":", whole));
    default:
      return line.flag("op", random.of(reductions))
          .flag("layout", random.of(layouts))
          .end(cat(whole, ":", part));
  }
}

}  // namespace

std::string random_line(std::uint64_t number) {
  Random random(number + 1);
  switch (random.below(20)) {
    case 0: return local_line(random);
    case 1: return pool_line(random);
    case 2: return act_line(random);
    case 3: return softmax_line(random);
    case 4: return norm_line(random);
    case 5: return tensor_line(random);
    default: return conv_line(random);
  }
}

}  // namespace proof
