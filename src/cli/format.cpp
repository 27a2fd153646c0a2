#include "cli/format.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/text.hpp"

namespace kiln::cli {
namespace {

std::string print(const char* format, int precision, double value) {
  std::array<char, 400> text;  // "%.*f" of the largest double fits
  std::snprintf(text.data(), text.size(), format, precision, value);
  return text.data();
}

}  // namespace

std::string fixed(double value, int decimals) { return print("%.*f", decimals, value); }

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fixed(value, 0);
  const int decimals = digits - 1 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return fixed(value, std::max(decimals, 0));
}

std::string scientific(double value, int decimals) { return print("%.*e", decimals, value); }

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return cat(fixed(value, unit == 0 ? 0 : 1), " ", units[unit]);
}

std::string rate_text(double teraflops) {
  if (teraflops >= 0.1) return significant(teraflops, 3) + " TFLOP/s";
  if (teraflops >= 1e-4) return significant(teraflops * 1e3, 3) + " GFLOP/s";
  return significant(teraflops * 1e6, 3) + " MFLOP/s";
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  if (total < 60) return cat(total, "s");
  const std::string rest = cat(total % 60);
  return cat(total / 60, "m", rest.size() < 2 ? "0" : "", rest, "s");
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace kiln::cli
