#include "engines/conv/gather.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/integer.hpp"

namespace kiln {
namespace {

// One spatial dimension of one phase.
struct AxisPhase {
  std::int64_t pixels, taps, origin, first_tap, first_pixel;
};

// In convolution mode the filter is flipped, so x is walked backwards from its far end.
AxisPhase fprop_axis(const ConvolutionProblem& problem, int i) {
  const std::int64_t extent = (problem.filter[i] - 1) * problem.dilation[i];
  const bool flip = problem.mode == KILN_CONVOLUTION;
  return {problem.out[i], problem.filter[i], (flip ? extent : 0) - problem.pad[i], 0, 0};
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t positive) {
  return (a % positive + positive) % positive;
}

// The inverse of a modulo `modulus` (a and modulus are coprime); 0 for a modulus of 1.
std::int64_t inverse_modulo(std::int64_t a, std::int64_t modulus) {
  std::int64_t x = 0, next = 1, rest = modulus, other = a % modulus;
  while (other != 0) {
    const std::int64_t quotient = rest / other;
    rest = std::exchange(other, rest - quotient * other);
    x = std::exchange(next, x - quotient * next);
  }
  return floor_modulo(x, modulus);
}

// The pixels of dx at `residue` modulo the stride.
AxisPhase dgrad_axis(const ConvolutionProblem& problem, int i, std::int64_t residue) {
  const std::int64_t stride = problem.stride[i], dilation = problem.dilation[i];
  const std::int64_t common = std::gcd(stride, dilation), tap_step = stride / common;
  AxisPhase phase{(problem.in[i] - residue + stride - 1) / stride, 0, 0, 0, residue};
  if (residue >= problem.in[i]) phase.pixels = 0;
  const std::int64_t distance = residue + problem.pad[i];  // from tap 0 of output 0
  // The first tap with distance - first * dilation a multiple of the stride.
  if (distance % common != 0) return phase;
  const std::int64_t first = floor_modulo(distance / common, tap_step) *
                             inverse_modulo(dilation / common, tap_step) % tap_step;
  if (first >= problem.filter[i]) return phase;
  phase.taps = (problem.filter[i] - 1 - first) / tap_step + 1;
  phase.origin = (distance - first * dilation) / stride;
  phase.first_tap = first;
  if (problem.mode == KILN_CONVOLUTION) {  // flipped, and taken from the other end
    phase.first_tap = problem.filter[i] - 1 - first - (phase.taps - 1) * tap_step;
    phase.origin -= (phase.taps - 1) * (dilation / common);
  }
  return phase;
}

Gather::Phase combine(const Spatial& w_strides, const Spatial& out_strides,
                      const Spatial& z_strides, const std::array<AxisPhase, 3>& axes) {
  Gather::Phase phase;
  for (int i = 0; i < 3; ++i) {
    phase.pixels[i] = axes[i].pixels;
    phase.taps[i] = axes[i].taps;
    phase.origin[i] = axes[i].origin;
    phase.position[i] = axes[i].first_pixel;
    phase.w_first += axes[i].first_tap * w_strides[i];
    phase.out_first += axes[i].first_pixel * out_strides[i];
    phase.z_first += axes[i].first_pixel * z_strides[i];
  }
  return phase;
}

Spatial spatial(const Dims& strides) { return {strides[2], strides[3], strides[4]}; }

Gather gather_fprop(const ConvolutionProblem& problem) {
  Gather gather;
  gather.channels = problem.group_in();
  gather.rows = problem.group_out();
  gather.source = problem.in;
  gather.stride = problem.stride;
  gather.source_strides = problem.x_strides;
  gather.out_strides = problem.y_strides;
  gather.z_strides = problem.epilogue.residual ? problem.z_strides : gather.out_strides;
  gather.w_row = problem.w_strides[0];
  gather.w_channel = problem.w_strides[1];
  gather.w_tap = spatial(problem.w_strides);
  for (int i = 0; i < 3; ++i)
    gather.step[i] = problem.mode == KILN_CONVOLUTION ? -problem.dilation[i] : problem.dilation[i];
  gather.phases.push_back(combine(
      {}, {}, {}, {fprop_axis(problem, 0), fprop_axis(problem, 1), fprop_axis(problem, 2)}));
  return gather;
}

Gather gather_dgrad(const ConvolutionProblem& problem) {
  Gather gather;
  gather.channels = problem.group_out();
  gather.rows = problem.group_in();
  gather.source = problem.out;
  gather.stride = {1, 1, 1};
  gather.source_strides = problem.y_strides;
  gather.out_strides = problem.x_strides;
  gather.z_strides = problem.epilogue.residual ? problem.z_strides : gather.out_strides;
  gather.w_row = problem.w_strides[1];
  gather.w_channel = problem.w_strides[0];
  const Spatial w_strides = spatial(problem.w_strides), out_strides = spatial(problem.x_strides);
  const Spatial z_strides = spatial(gather.z_strides);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t common = std::gcd(problem.stride[i], problem.dilation[i]);
    const std::int64_t back = problem.dilation[i] / common;
    gather.step[i] = problem.mode == KILN_CONVOLUTION ? back : -back;
    gather.w_tap[i] = w_strides[i] * (problem.stride[i] / common);
    gather.out_strides[2 + i] *= problem.stride[i];
    gather.z_strides[2 + i] *= problem.stride[i];
  }
  // Each phase becomes a row of the kernel's constants.
  constexpr std::int64_t most_phases = 65536;
  Spatial phases;
  std::int64_t count = 1;
  for (int i = 0; i < 3; ++i) {
    phases[i] = std::min(problem.stride[i], problem.in[i]);
    if (phases[i] > most_phases / count)
      fail(KILN_STATUS_NOT_SUPPORTED, "strides are ", join(problem.stride, "x"), " for a dx of ",
           join(problem.in, "x"), "; expected a data gradient of at most ", most_phases,
           " phases, positions modulo the stride");
    count *= phases[i];
  }
  for (std::int64_t d = 0; d < phases[0]; ++d)
    for (std::int64_t h = 0; h < phases[1]; ++h)
      for (std::int64_t w = 0; w < phases[2]; ++w)
        gather.phases.push_back(combine(
            w_strides, out_strides, z_strides,
            {dgrad_axis(problem, 0, d), dgrad_axis(problem, 1, h), dgrad_axis(problem, 2, w)}));
  std::stable_sort(
      gather.phases.begin(), gather.phases.end(),
      [](const Gather::Phase& a, const Gather::Phase& b) { return a.tap_count() > b.tap_count(); });
  return gather;
}

// The number of (pixel, tap) pairs along one dimension whose tap lies inside the source; estimated
// from a sample where there are very many taps.
double live_pairs(const Gather& gather, const Gather::Phase& phase, int i) {
  const std::int64_t every = std::max<std::int64_t>(phase.taps[i] / 1024, 1);
  std::int64_t live = 0, looked_at = 0;
  for (std::int64_t tap = 0; tap < phase.taps[i]; tap += every, ++looked_at) {
    // 0 <= o * stride + at < source
    const std::int64_t at = phase.origin[i] + tap * gather.step[i], stride = gather.stride[i];
    const std::int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride;
    const std::int64_t end = at >= gather.source[i] ? 0 : (gather.source[i] - 1 - at) / stride + 1;
    live += std::max<std::int64_t>(0, std::min(end, phase.pixels[i]) - first);
  }
  if (every == 1) return static_cast<double>(live);
  return static_cast<double>(live) / static_cast<double>(looked_at) *
         static_cast<double>(phase.taps[i]);
}

// The mean number of taps along dimension i that lie inside the source for at least one of `run`
// neighbouring pixels; estimated from a sample where there are very many pixels.
double mean_walk(const Gather& gather, const Gather::Phase& phase, int i, std::int64_t run) {
  const std::int64_t taps = phase.taps[i], source = gather.source[i], step = gather.step[i];
  const std::int64_t starts = phase.pixels[i] - run + 1;
  if (taps == 0 || run <= 0 || starts <= 0) return 0;
  // The taps inside the source form an interval, both ends of which move on with the pixel.
  const auto inside = [&](std::int64_t pixel) {
    const std::int64_t at = pixel * gather.stride[i] + phase.origin[i];
    const std::int64_t room = step > 0 ? source - 1 - at : at,
                       before = step > 0 ? -at : at - source + 1;
    const std::int64_t each = std::abs(step);
    const std::int64_t last = room < 0 ? -1 : std::min(taps - 1, room / each);
    const std::int64_t first = before <= 0 ? 0 : ceil_div(before, each);
    return std::pair(std::min(first, taps), last);
  };
  const std::int64_t every = std::max<std::int64_t>(starts / 16, 1);
  double sum = 0, count = 0;
  for (std::int64_t start = 0; start < starts; start += every, ++count) {
    const auto a = inside(start), b = inside(start + run - 1);
    sum += static_cast<double>(
        std::max<std::int64_t>(0, std::max(a.second, b.second) - std::min(a.first, b.first) + 1));
  }
  return sum / count;
}

}  // namespace

std::int64_t Gather::most_pixels() const {
  std::int64_t most = 0;
  for (const Phase& phase : phases) most = std::max(most, phase.out_pixels());
  return most;
}

std::int64_t Gather::most_taps() const { return phases.front().tap_count(); }

double Gather::mean_taps() const {
  double taps = 0, pixels = 0;
  for (const Phase& phase : phases) {
    const auto weight = static_cast<double>(phase.out_pixels());
    taps += weight * static_cast<double>(phase.tap_count());
    pixels += weight;
  }
  return pixels > 0 ? taps / pixels : 0;
}

Spatial Gather::largest_taps() const {
  Spatial largest{};
  for (const Phase& phase : phases)
    for (int i = 0; i < 3; ++i) largest[i] = std::max(largest[i], phase.taps[i]);
  return largest;
}

Spatial Gather::largest_pixels() const {
  Spatial largest{};
  for (const Phase& phase : phases)
    for (int i = 0; i < 3; ++i) largest[i] = std::max(largest[i], phase.pixels[i]);
  return largest;
}

double Gather::padding_waste() const {
  double all = 0, live = 0;
  for (const Phase& phase : phases) {
    all += static_cast<double>(phase.out_pixels()) * static_cast<double>(phase.tap_count());
    double inside = 1;
    for (int i = 0; i < 3; ++i) inside *= live_pairs(*this, phase, i);
    live += inside;
  }
  return live > 0 ? all / live - 1 : 0;
}

std::int64_t Gather::live_taps(int dimension, std::int64_t first, std::int64_t last) const {
  const Phase& phase = phases.front();
  const std::int64_t distance = std::abs(step[dimension]), taps = phase.taps[dimension];
  // The tap nearest the source's beginning, and how far inside the source taps lie for some pixel.
  const std::int64_t nearest =
      phase.origin[dimension] + (step[dimension] < 0 ? (taps - 1) * step[dimension] : 0);
  const std::int64_t begin = -last * stride[dimension] - nearest,
                     end = source[dimension] - first * stride[dimension] - nearest;
  const auto before = [&](std::int64_t place) {  // the taps that lie before it
    return place <= 0 ? 0 : std::min(taps, ceil_div(place, distance));
  };
  return std::max<std::int64_t>(before(end) - before(begin), 0);
}

double Gather::walked_taps(std::int64_t places) const {
  double all = 0, pixels = 0;
  for (const Phase& phase : phases) {
    if (phase.out_pixels() == 0) continue;
    const auto run = [&](int i, std::int64_t length) {
      return mean_walk(*this, phase, i, std::min(length, phase.pixels[i]));
    };
    const double taps = run(2, places) * run(1, ceil_div(places, phase.pixels[2])) * run(0, 1);
    const auto weight = static_cast<double>(phase.out_pixels());
    all += taps * weight;
    pixels += weight;
  }
  return pixels > 0 ? all / pixels : 0;
}

bool Gather::leaves_source(int i) const {
  return std::any_of(phases.begin(), phases.end(), [&](const Phase& phase) {
    const std::int64_t pixels = (phase.pixels[i] - 1) * stride[i];
    const std::int64_t taps = (phase.taps[i] - 1) * step[i];
    return phase.origin[i] + std::min<std::int64_t>(taps, 0) < 0 ||
           phase.origin[i] + pixels + std::max<std::int64_t>(taps, 0) >= source[i];
  });
}

bool is_gather(const Problem& problem) {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass != ConvolutionPass::wgrad;
}

Refusal plane_refusal(const Gather& gather) {
  if (gather.phases.size() > 1)
    return Refusal{"a data gradient with a stride; this engine takes stride 1"};
  const Gather::Phase& phase = gather.phases.front();
  if (gather.source[0] != 1 || phase.pixels[0] != 1 || phase.taps[0] != 1)
    return Refusal{"three dimensions of space; this engine takes one and two"};
  if (phase.tap_count() == 0) return Refusal{"no tap of the filter meets the input"};
  return {};
}

Refusal rows_refusal(std::int64_t rows, std::int64_t least) {
  if (rows >= least) return {};
  return Refusal{cat(rows, " output channels a group; with fewer than ", least,
                     " most of this engine's work would be idle")};
}

Gather make_gather(const ConvolutionProblem& problem) {
  Gather gather =
      problem.pass == ConvolutionPass::dgrad ? gather_dgrad(problem) : gather_fprop(problem);
  gather.type = problem.type();
  gather.batch = problem.batch;
  gather.groups = problem.groups;
  gather.w_group = problem.group_out() * problem.w_strides[0];
  gather.source_group = gather.channels * gather.source_strides[1];
  gather.out_group = gather.rows * gather.out_strides[1];
  gather.z_group = gather.rows * gather.z_strides[1];
  gather.bias_group = gather.rows * problem.bias_stride;
  if (const auto& groups = problem.group_strides) {
    const bool dgrad = problem.pass == ConvolutionPass::dgrad;
    gather.w_group = groups->w;
    gather.source_group = dgrad ? groups->y : groups->x;
    gather.out_group = dgrad ? groups->x : groups->y;
    gather.z_group = problem.epilogue.residual ? groups->z : gather.out_group;
    gather.bias_group = 0;
  }
  return gather;
}

std::int64_t image_span(const Dims& strides, std::int64_t channels, const Spatial& sizes) {
  std::int64_t span = 1 + (channels - 1) * strides[1];
  for (int i = 0; i < 3; ++i) span += (sizes[i] - 1) * strides[2 + i];
  return span;
}

}  // namespace kiln
