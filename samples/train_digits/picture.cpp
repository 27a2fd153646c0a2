#include "picture.hpp"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace {

struct Colour {
  double red, green, blue;
};
constexpr Colour black{0.1, 0.1, 0.1}, grey{0.55, 0.55, 0.55}, pale{0.87, 0.87, 0.87},
    blue{0.12, 0.38, 0.68}, green{0, 0.5, 0.15}, red{0.75, 0.1, 0.1};

struct Box {
  double x, y, width, height;
};

std::string number(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

class Canvas {
 public:
  Canvas(int width, int height)
      : surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height)),
        cairo_(cairo_create(surface_)) {
    fill({0, 0, static_cast<double>(width), static_cast<double>(height)}, {1, 1, 1});
    cairo_select_font_face(cairo_, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  }
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;
  ~Canvas() {
    cairo_destroy(cairo_);
    cairo_surface_destroy(surface_);
  }

  void fill(const Box& box, Colour colour) {
    use(colour);
    cairo_rectangle(cairo_, box.x, box.y, box.width, box.height);
    cairo_fill(cairo_);
  }

  void line(const std::vector<std::pair<double, double>>& points, Colour colour, double width) {
    use(colour);
    cairo_set_line_width(cairo_, width);
    cairo_new_path(cairo_);
    for (const auto& [x, y] : points) cairo_line_to(cairo_, x, y);
    cairo_stroke(cairo_);
  }

  // `align` is the share of the text that stands left of x: 0, 0.5 or 1; y is its middle.
  void text(double x, double y, const std::string& text, Colour colour = black, double align = 0,
            double size = 13) {
    use(colour);
    cairo_set_font_size(cairo_, size);
    cairo_text_extents_t extents;
    cairo_text_extents(cairo_, text.c_str(), &extents);
    cairo_font_extents_t font;
    cairo_font_extents(cairo_, &font);
    cairo_move_to(cairo_, x - align * extents.x_advance, y + (font.ascent - font.descent) / 2);
    cairo_show_text(cairo_, text.c_str());
  }

  void write(const std::string& path) const {
    if (const auto status = cairo_surface_write_to_png(surface_, path.c_str());
        status != CAIRO_STATUS_SUCCESS)
      throw std::runtime_error("cannot write " + path + ": " + cairo_status_to_string(status));
  }

 private:
  void use(Colour colour) { cairo_set_source_rgb(cairo_, colour.red, colour.green, colour.blue); }

  cairo_surface_t* surface_;
  cairo_t* cairo_;
};

// ---- the parts --------------------------------------------------------------------------------

// The loss of each step, pale, and its running mean, which is what to look at.
void draw_losses(Canvas& canvas, const Box& box, const Training& training) {
  canvas.text(box.x, box.y - 22,
              "Loss (mean cross-entropy of a batch): each step, and a running mean");
  const std::vector<double>& losses = training.losses;
  const double largest = *std::max_element(losses.begin(), losses.end());
  const double top = std::max(0.5, std::ceil(2 * largest) / 2), tick = top > 3 ? 1 : 0.5;
  const double last = std::max<double>(1, static_cast<double>(losses.size()) - 1);
  const auto place = [&](std::size_t step, double loss) {
    return std::pair(box.x + box.width * static_cast<double>(step) / last,
                     box.y + box.height * (1 - loss / top));
  };
  for (double loss = 0; loss <= top; loss += tick) {
    const double y = place(0, loss).second;
    canvas.line({{box.x, y}, {box.x + box.width, y}}, pale, 1);
    canvas.text(box.x - 8, y, number("%.1f", loss), grey, 1);
  }
  for (int epoch = 0; epoch <= training.epochs; ++epoch) {
    const double x = box.x + box.width * epoch / training.epochs;
    canvas.line({{x, box.y + box.height}, {x, box.y + box.height + 4}}, grey, 1);
    canvas.text(x, box.y + box.height + 14, std::to_string(epoch), grey, 0.5);
  }
  canvas.text(box.x + box.width / 2, box.y + box.height + 32, "times through the training digits",
              grey, 0.5);
  std::vector<std::pair<double, double>> each, mean;
  double running = losses.front();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    running = 0.9 * running + 0.1 * losses[step];
    each.push_back(place(step, losses[step]));
    mean.push_back(place(step, running));
  }
  canvas.line(each, {0.72, 0.82, 0.93}, 1);
  canvas.line(mean, blue, 2);
}

// How many of each digit (a row) were taken for which (a column): green on the diagonal, red beside
// it.
void draw_confusion(Canvas& canvas, const Box& box, const Digits& test,
                    const std::vector<int>& predictions) {
  canvas.text(box.x - 20, box.y - 40, "Confusion matrix: digit (row), taken for (column)");
  std::array<std::array<int, 10>, 10> counts{};
  for (std::size_t i = 0; i < predictions.size(); ++i)
    ++counts[static_cast<std::size_t>(test.labels[i])][static_cast<std::size_t>(predictions[i])];
  const double cell = box.width / 10;
  for (std::size_t digit = 0; digit < 10; ++digit) {
    int all = 0;
    for (const int count : counts[digit]) all += count;
    const double y = box.y + cell * static_cast<double>(digit);
    canvas.text(box.x - 8, y + cell / 2, std::to_string(digit), grey, 1);
    canvas.text(box.x + cell * (static_cast<double>(digit) + 0.5), box.y - 10,
                std::to_string(digit), grey, 0.5);
    for (std::size_t taken = 0; taken < 10; ++taken) {
      const double x = box.x + cell * static_cast<double>(taken);
      const double share = all > 0 ? static_cast<double>(counts[digit][taken]) / all : 0;
      const Colour full = digit == taken ? green : red;
      const double strength = std::sqrt(share);  // a single error is to be seen
      const auto fade = [&](double part) { return 1 - strength * (1 - part) * 0.85; };
      canvas.fill({x, y, cell - 1, cell - 1},
                  share > 0 ? Colour{fade(full.red), fade(full.green), fade(full.blue)}
                            : Colour{0.96, 0.96, 0.96});
      if (counts[digit][taken] > 0)
        canvas.text(x + cell / 2, y + cell / 2, std::to_string(counts[digit][taken]),
                    strength > 0.6 ? Colour{1, 1, 1} : black, 0.5, 11);
    }
  }
}

// From blue (negative) over white to red.
Colour signed_colour(double value) {
  const double faded = 1 - std::clamp(std::fabs(value), 0.0, 1.0);
  return value > 0 ? Colour{1, faded, faded} : Colour{faded, faded, 1};
}

// As many as have room.
void draw_filters(Canvas& canvas, const Box& box, const std::vector<float>& filters) {
  canvas.text(box.x, box.y - 14,
              "Filters of the first layer, 5 x 5: blue is negative, white 0, red positive");
  const std::size_t count =
      std::min(filters.size() / 25, static_cast<std::size_t>(box.width / (box.height + 12)));
  double largest = 1e-6;
  for (const float value : filters)
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  const double dot = box.height / 5;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t at = 0; at < 25; ++at)
      canvas.fill(
          {box.x + static_cast<double>(i) * (box.height + 12) + dot * static_cast<double>(at % 5),
           box.y + dot * static_cast<double>(at / 5), dot, dot},
          signed_colour(filters[i * 25 + at] / largest));
}

void draw_digits(Canvas& canvas, const Box& box, const Digits& test,
                 const std::vector<int>& predictions) {
  canvas.text(box.x, box.y - 14, "Test digits, and below each what the network takes it for");
  const double pixel = box.height / picture_side, step = box.height + 12;
  const std::size_t count = std::min(test.count(), static_cast<std::size_t>(box.width / step));
  for (std::size_t i = 0; i < count; ++i) {
    const double left = box.x + static_cast<double>(i) * step;
    for (std::size_t at = 0; at < picture_size; ++at) {
      const double paper = 1 - std::clamp<double>(test.pictures[i * picture_size + at], 0, 1);
      canvas.fill({left + pixel * static_cast<double>(at % picture_side),
                   box.y + pixel * static_cast<double>(at / picture_side), pixel, pixel},
                  {paper, paper, paper});
    }
    const bool right = predictions[i] == test.labels[i];
    canvas.text(left + box.height / 2, box.y + box.height + 14,
                right ? std::to_string(predictions[i])
                      : std::to_string(predictions[i]) + ", not " + std::to_string(test.labels[i]),
                right ? green : red, 0.5);
  }
}

}  // namespace

void write_picture(const std::string& path, const Training& training, const Digits& test) {
  constexpr int width = 940, height = 690;
  Canvas canvas(width, height);
  canvas.text(24, 26, training.title, black, 0, 16);
  draw_losses(canvas, {64, 90, 440, 280}, training);
  draw_confusion(canvas, {580, 108, 330, 330}, test, training.predictions);
  draw_filters(canvas, {24, 484, width - 48, 60}, training.filters);
  draw_digits(canvas, {24, 590, width - 48, 56}, test, training.predictions);
  canvas.write(path);
}
