#include "common/digits.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>

namespace {

struct Point {
  double x, y;  // in a box of 1 x 1, y downwards
};
using Stroke = std::vector<Point>;

// Part of an ellipse, angles in turns, clockwise from the right.
Stroke arc(Point center, double radius_x, double radius_y, double from, double to) {
  Stroke stroke;
  constexpr int steps = 16;
  for (int i = 0; i <= steps; ++i) {
    const double angle = 2 * std::numbers::pi * (from + (to - from) * i / steps);
    stroke.push_back(
        {center.x + radius_x * std::cos(angle), center.y + radius_y * std::sin(angle)});
  }
  return stroke;
}

std::vector<Stroke> strokes_of(int digit) {
  switch (digit) {
    case 0: return {arc({0.5, 0.5}, 0.27, 0.4, 0, 1)};
    case 1: return {{{0.35, 0.28}, {0.53, 0.1}, {0.53, 0.9}}};
    case 2:
      return {arc({0.5, 0.32}, 0.25, 0.22, 0.5, 1.1), {{0.7, 0.45}, {0.25, 0.9}, {0.77, 0.9}}};
    case 3: return {arc({0.47, 0.3}, 0.24, 0.2, 0.6, 1.25), arc({0.47, 0.7}, 0.27, 0.2, 0.75, 1.4)};
    case 4: return {{{0.6, 0.9}, {0.6, 0.1}, {0.2, 0.65}, {0.8, 0.65}}};
    case 5:
      return {{{0.73, 0.1}, {0.32, 0.1}, {0.28, 0.48}}, arc({0.47, 0.66}, 0.26, 0.24, 0.62, 1.4)};
    case 6: return {{{0.62, 0.08}, {0.32, 0.45}}, arc({0.5, 0.67}, 0.24, 0.23, 0, 1)};
    case 7: return {{{0.22, 0.12}, {0.78, 0.12}, {0.42, 0.9}}};
    case 8: return {arc({0.5, 0.29}, 0.2, 0.19, 0, 1), arc({0.5, 0.69}, 0.25, 0.21, 0, 1)};
    default: return {arc({0.5, 0.33}, 0.24, 0.23, 0, 1), {{0.74, 0.35}, {0.64, 0.92}}};
  }
}

double distance_to(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  const double x = p.x - a.x - t * dx, y = p.y - a.y - t * dy;
  return std::sqrt(x * x + y * y);
}

void draw(int digit, std::mt19937_64& random, float* picture) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const double turn = between(-0.25, 0.25), scale_x = between(0.75, 1.1),
               scale_y = between(0.8, 1.1), shear = between(-0.2, 0.2);
  const double shift_x = between(-2, 2), shift_y = between(-2, 2), pen = between(0.7, 1.5);
  const double side = 20;
  const auto place = [&](Point p) {
    const double x = (p.x - 0.5) * scale_x + shear * (p.y - 0.5), y = (p.y - 0.5) * scale_y;
    return Point{picture_side / 2.0 + side * (x * std::cos(turn) - y * std::sin(turn)) + shift_x,
                 picture_side / 2.0 + side * (x * std::sin(turn) + y * std::cos(turn)) + shift_y};
  };
  std::vector<Stroke> strokes = strokes_of(digit);
  for (Stroke& stroke : strokes)
    for (Point& point : stroke)
      point = place({point.x + between(-0.02, 0.02), point.y + between(-0.02, 0.02)});
  std::normal_distribution<double> noise(0, 0.1);
  for (int row = 0; row < picture_side; ++row)
    for (int column = 0; column < picture_side; ++column) {
      double nearest = 1e9;
      for (const Stroke& stroke : strokes)
        for (std::size_t i = 0; i + 1 < stroke.size(); ++i)
          nearest =
              std::min(nearest, distance_to({column + 0.5, row + 0.5}, stroke[i], stroke[i + 1]));
      const double ink = std::clamp(pen + 0.5 - nearest, 0.0, 1.0);  // an edge of one pixel
      picture[row * picture_side + column] =
          static_cast<float>(std::clamp(ink + noise(random), 0.0, 1.0));
    }
}

std::uint32_t big_endian(std::istream& in) {
  unsigned char bytes[4] = {};
  in.read(reinterpret_cast<char*>(bytes), 4);
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<unsigned char> read_idx(const std::string& path, std::uint32_t magic, std::size_t item,
                                    std::size_t& count) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  if (const std::uint32_t found = big_endian(in); found != magic)
    throw std::runtime_error(path + " begins with " + std::to_string(found) + "; expected " +
                             std::to_string(magic));
  count = std::min<std::size_t>(count, big_endian(in));
  if (item > 1) {
    const std::uint32_t rows = big_endian(in), columns = big_endian(in);
    if (rows != picture_side || columns != picture_side)
      throw std::runtime_error(path + " has pictures of " + std::to_string(rows) + " x " +
                               std::to_string(columns) + "; expected 28 x 28");
  }
  std::vector<unsigned char> bytes(count * item);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in) throw std::runtime_error(path + " ends early");
  return bytes;
}

}  // namespace

Digits render_digits(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Digits digits;
  digits.pictures.resize(count * picture_size);
  for (std::size_t i = 0; i < count; ++i) {
    digits.labels.push_back(std::uniform_int_distribution<int>(0, 9)(random));
    draw(digits.labels.back(), random, digits.pictures.data() + i * picture_size);
  }
  return digits;
}

Digits read_mnist(const std::string& folder, const std::string& prefix, std::size_t count) {
  const std::string base = folder + "/" + prefix;
  std::size_t pictures = count;
  const auto ink = read_idx(base + "-images-idx3-ubyte", 2051, picture_size, pictures);
  const auto labels = read_idx(base + "-labels-idx1-ubyte", 2049, 1, pictures);
  Digits digits;
  for (const unsigned char value : ink) digits.pictures.push_back(static_cast<float>(value) / 255);
  digits.pictures.resize(labels.size() * picture_size);
  digits.labels.assign(labels.begin(), labels.end());
  return digits;
}

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

Batch::Batch(const Digits& digits, const std::vector<std::size_t>& order, std::size_t begin,
             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = order[std::min(begin + i, order.size() - 1)];
    const auto first = digits.pictures.begin() + static_cast<std::ptrdiff_t>(at * picture_size);
    pictures.insert(pictures.end(), first, first + picture_size);
    labels.push_back(digits.labels[at]);
  }
}

double mean_loss(const std::vector<float>& probabilities, const std::vector<int>& labels) {
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    loss -= std::log(std::max(probabilities[i * 10 + static_cast<std::size_t>(labels[i])], 1e-30f));
  return loss / static_cast<double>(labels.size());
}

std::vector<int> predictions(const Predict& predict, const Digits& digits, std::size_t batch) {
  const std::vector<std::size_t> order = numbers(digits.count());
  std::vector<int> out;
  for (std::size_t begin = 0; begin < digits.count(); begin += batch) {
    const std::vector<float> p = predict(Batch(digits, order, begin, batch).pictures);
    for (std::size_t i = 0; i < batch && begin + i < digits.count(); ++i) {
      const auto first = p.begin() + static_cast<std::ptrdiff_t>(i * 10);
      out.push_back(static_cast<int>(std::max_element(first, first + 10) - first));
    }
  }
  return out;
}

double accuracy(const std::vector<int>& predictions, const Digits& digits) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) right += predictions[i] == digits.labels[i];
  return static_cast<double>(right) / static_cast<double>(digits.count());
}
