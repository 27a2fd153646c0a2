#include "problem/activation.hpp"

#include <array>
#include <cmath>

#include "core/error.hpp"

namespace kiln {
namespace {

struct Entry {
  const char* name;
  bool from_output;
  bool coefficient;
};

// In the order of kilnActivationMode_t.
constexpr std::array<Entry, KILN_ACTIVATION_HARD_SWISH + 1> modes{{
    {"identity", true, false},
    {"sigmoid", true, false},
    {"relu", true, false},
    {"tanh", true, false},
    {"clipped_relu", true, true},
    {"leaky_relu", true, true},
    {"elu", true, true},
    {"gelu_erf", false, false},
    {"gelu_tanh", false, false},
    {"silu", false, false},
    {"softplus", false, false},
    {"hard_swish", false, false},
}};

const Entry& entry(kilnActivationMode_t mode) { return modes.at(static_cast<std::size_t>(mode)); }

}  // namespace

Activation make_activation(kilnActivationMode_t mode, double coefficient) {
  if (mode < KILN_ACTIVATION_IDENTITY || mode > KILN_ACTIVATION_HARD_SWISH) {
    fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode), "; expected ",
         static_cast<int>(KILN_ACTIVATION_IDENTITY), " (identity) to ",
         static_cast<int>(KILN_ACTIVATION_HARD_SWISH), " (hard-swish)");
  }
  if (!has_coefficient(mode)) return {mode, 0};
  if (!std::isfinite(coefficient) || coefficient < 0) {
    fail(KILN_STATUS_BAD_PARAM, "coef is ", coefficient, "; expected a finite value of at least 0");
  }
  return {mode, coefficient};
}

bool gradient_from_output(kilnActivationMode_t mode) { return entry(mode).from_output; }
bool has_coefficient(kilnActivationMode_t mode) { return entry(mode).coefficient; }
std::string_view name_of(kilnActivationMode_t mode) { return entry(mode).name; }

bool parse_activation(std::string_view text, kilnActivationMode_t& mode) {
  for (std::size_t i = 0; i < modes.size(); ++i) {
    if (text != modes[i].name) continue;
    mode = static_cast<kilnActivationMode_t>(i);
    return true;
  }
  return false;
}

}  // namespace kiln
