// Pictures of digits: rendered, or MNIST's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

constexpr int picture_side = 28;
constexpr int picture_size = picture_side * picture_side;

struct Digits {
  std::vector<float> pictures;  // count x 28 x 28, from 0 (paper) to 1 (ink)
  std::vector<int> labels;
  std::size_t count() const { return labels.size(); }
};

// `count` digits of strokes, each turned, scaled, sheared, shifted and drawn with a pen of a random
// width, under noise. The same for the same seed.
Digits render_digits(std::size_t count, std::uint64_t seed);

// The IDX files of MNIST in a folder: train-images-idx3-ubyte and train-labels-idx1-ubyte, or
// t10k-... for `prefix` "t10k". At most `count` of them. Throws std::runtime_error naming what is
// wrong.
Digits read_mnist(const std::string& folder, const std::string& prefix, std::size_t count);
