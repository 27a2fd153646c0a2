// The convolutions of problem lines for oneDNN: dense tensors in the order N, C, space; filters in
// the order g, K/g, C/g, space.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "onednn.hpp"
#include "problem/line/problem_line.hpp"

namespace onednn {

inline Memory::dims space(const kiln::ConvolutionLine& line, const kiln::Spatial& sizes,
                          std::int64_t offset = 0) {
  Memory::dims dims;
  for (int i = 3 - line.rank; i < 3; ++i) dims.push_back(sizes[i] + offset);
  return dims;
}

inline Memory::desc dense(const kiln::ConvolutionLine& line, Memory::dims dims,
                          const kiln::Spatial& sizes) {
  for (const auto size : space(line, sizes)) dims.push_back(size);
  Memory::dims strides(dims.size());
  Memory::dim next = 1;
  for (std::size_t i = dims.size(); i-- > 0; next *= dims[i]) strides[i] = next;
  return {dims, Memory::data_type::f32, strides};
}

inline Memory::desc x_layout(const kiln::ConvolutionLine& line) {
  return dense(line, {line.batch, line.in_channels}, line.in);
}
inline Memory::desc y_layout(const kiln::ConvolutionLine& line) {
  return dense(line, {line.batch, line.out_channels}, line.out);
}
inline Memory::desc w_layout(const kiln::ConvolutionLine& line) {
  return dense(line, {line.groups, line.out_channels / line.groups, line.in_channels / line.groups},
               line.filter);
}

inline std::size_t count(const Memory::desc& desc) { return desc.get_size() / sizeof(float); }

inline dnnl::convolution_forward::primitive_desc describe_fprop(const kiln::ConvolutionLine& line,
                                                                dnnl::prop_kind kind) {
  return describe_forward<dnnl::convolution_forward>(
      kind, dnnl::algorithm::convolution_direct, x_layout(line), w_layout(line), y_layout(line),
      space(line, line.stride), space(line, line.dilation, -1), space(line, line.pad_before),
      space(line, line.pad_after));
}

// Dense filters whose taps are mirrored in space.
inline std::vector<float> flipped(const kiln::ConvolutionLine& line, const std::vector<float>& w) {
  const std::int64_t taps = line.filter[0] * line.filter[1] * line.filter[2];
  std::vector<float> out(w);
  for (auto begin = out.begin(); begin != out.end(); begin += taps)
    std::reverse(begin, begin + taps);
  return out;
}

// The elements, given densely, in memory with an operand's strides.
inline std::vector<float> rearranged(const std::vector<float>& values,
                                     const kiln::Operand& operand) {
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    out[static_cast<std::size_t>(operand.offset(static_cast<std::int64_t>(i)))] = values[i];
  return out;
}

// oneDNN supports no negative padding. Up to stride - 1 elements behind the last one that is read
// have no effect, so the padding may be made larger by as many. Returns false if oneDNN cannot
// compute the line nonetheless.
inline bool make_known_to_onednn(kiln::ConvolutionLine& line) {
  for (int i = 0; i < 3; ++i) {
    if (line.pad_after[i] < 0)
      line.pad_after[i] = std::min(line.pad_after[i] + line.stride[i] - 1, std::int64_t{0});
    if (line.pad_before[i] < 0 || line.pad_after[i] < 0) return false;
  }
  return line.batch > 0;
}

inline kiln::ConvolutionLine random_line(Random& random) {
  for (;;) {
    kiln::ConvolutionLine line;
    line.rank = static_cast<int>(random.among(1, 3));
    line.groups = random.coin() ? 1 : random.among(2, 6);
    line.batch = random.among(1, 3);
    line.in_channels = line.groups * random.among(1, 6);
    line.out_channels = line.groups * random.among(1, 6);
    bool legal = true;
    for (int i = 3 - line.rank; i < 3; ++i) {
      line.in[i] = random.among(1, 11);
      line.filter[i] = random.among(1, 4);
      line.stride[i] = random.among(1, 3);
      line.dilation[i] = random.among(1, 3);
      line.pad_before[i] = random.among(0, 4);
      const std::int64_t room = line.in[i] + line.pad_before[i] + random.among(0, 4) -
                                ((line.filter[i] - 1) * line.dilation[i] + 1);
      legal = legal && room >= 0;
      line.out[i] = room / line.stride[i] + 1;
    }
    if (!legal) continue;
    line = kiln::parse_convolution_line(print_convolution_line(line));
    if (make_known_to_onednn(line)) return line;
  }
}

}  // namespace onednn
