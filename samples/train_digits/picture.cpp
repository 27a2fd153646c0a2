#include "picture.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace {

struct Colour {
  unsigned char red, green, blue;
};

class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), pixels_(static_cast<std::size_t>(width * height), {255, 255, 255}) {}

  void square(int x, int y, int side, Colour colour) {
    for (int row = y; row < y + side; ++row)
      for (int column = x; column < x + side; ++column)
        pixels_[static_cast<std::size_t>(row * width_ + column)] = colour;
  }

  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(pixels_.size() / static_cast<std::size_t>(width_));
    image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path.c_str(), 0, pixels_.data(), 0, nullptr))
      throw std::runtime_error("cannot write " + path + ": " + image.message);
  }

 private:
  int width_;
  std::vector<Colour> pixels_;
};

Colour grey(double ink) {
  const auto value = static_cast<unsigned char>(std::lround(255 * (1 - std::clamp(ink, 0.0, 1.0))));
  return {value, value, value};
}

// From blue (negative) over white to red.
Colour signed_colour(double value) {
  const double strength = std::clamp(std::fabs(value), 0.0, 1.0);
  const auto faded = static_cast<unsigned char>(std::lround(255 * (1 - strength)));
  return value > 0 ? Colour{255, faded, faded} : Colour{faded, faded, 255};
}

// Digits of 3 x 5 dots, a row in three bits.
constexpr unsigned char font[10][5] = {
    {7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7}, {5, 5, 7, 1, 1},
    {7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 2, 2, 2}, {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7}};

}  // namespace

void write_picture(const std::string& path, const std::vector<float>& filters, const Digits& digits,
                   const std::vector<int>& predictions) {
  constexpr int dot = 8, gap = 8, pixel = 2;
  const int filter_count = static_cast<int>(filters.size() / 25);
  const int digit_count = static_cast<int>(digits.count());
  const int filter_side = 5 * dot, digit_side = picture_side * pixel;
  const int width =
      std::max(filter_count * (filter_side + gap), digit_count * (digit_side + gap)) + gap;
  const int digits_top = 2 * gap + filter_side, marks_top = digits_top + digit_side + gap;
  Canvas canvas(width, marks_top + 5 * pixel * 2 + gap);

  float largest = 1e-6f;
  for (const float value : filters) largest = std::max(largest, std::fabs(value));
  for (int i = 0; i < filter_count; ++i)
    for (int at = 0; at < 25; ++at)
      canvas.square(gap + i * (filter_side + gap) + at % 5 * dot, gap + at / 5 * dot, dot,
                    signed_colour(filters[static_cast<std::size_t>(i * 25 + at)] / largest));

  for (int i = 0; i < digit_count; ++i) {
    const int left = gap + i * (digit_side + gap);
    for (int at = 0; at < picture_size; ++at)
      canvas.square(left + at % picture_side * pixel, digits_top + at / picture_side * pixel, pixel,
                    grey(digits.pictures[static_cast<std::size_t>(i * picture_size + at)]));
    const auto index = static_cast<std::size_t>(i);
    const bool right = predictions[index] == digits.labels[index];
    const Colour colour = right ? Colour{0, 140, 0} : Colour{200, 0, 0};
    for (int row = 0; row < 5; ++row)
      for (int column = 0; column < 3; ++column)
        if (font[predictions[index]][row] >> (2 - column) & 1)
          canvas.square(left + digit_side / 2 - 6 + column * 2 * pixel, marks_top + row * 2 * pixel,
                        2 * pixel, colour);
  }
  canvas.write(path);
}
