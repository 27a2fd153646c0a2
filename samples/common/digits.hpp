// Pictures of digits, rendered or MNIST's; how they are dealt out to a network, and how its answers
// are judged.
#pragma once

#include <cstdint>
#include <functional>
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

// The numbers from 0 to count - 1.
std::vector<std::size_t> numbers(std::size_t count);

// The pictures numbered order[begin], ...; the last one again where there are too few.
struct Batch {
  std::vector<float> pictures;
  std::vector<int> labels;
  Batch(const Digits& digits, const std::vector<std::size_t>& order, std::size_t begin,
        std::size_t count);
};

// The mean cross-entropy of probabilities (labels.size() x 10).
double mean_loss(const std::vector<float>& probabilities, const std::vector<int>& labels);

// Of the pictures of a batch the probabilities, batch x 10.
using Predict = std::function<std::vector<float>(const std::vector<float>& pictures)>;

// Which digit each picture is most likely, asked for in batches.
std::vector<int> predictions(const Predict& predict, const Digits& digits, std::size_t batch);

// How many of them are right, from 0 to 1.
double accuracy(const std::vector<int>& predictions, const Digits& digits);
