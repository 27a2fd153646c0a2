#include "reference/reference.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>
#include <thread>

#include "reference/element.hpp"

namespace kiln::reference {

std::vector<Expected> expect(const Problem& problem, const Scalars& scalars,
                             std::span<const void* const> operands,
                             std::span<const std::int64_t> indices, int threads) {
  const Request request{scalars, operands, indices, threads};
  return std::visit([&](const auto& value) { return expect(value, request); }, problem);
}

double terms_of_output(const Problem& problem) {
  return std::visit([](const auto& value) { return terms_of_output(value); }, problem);
}

double unit_roundoff(DataType compute_type) { return format_of(compute_type).unit_roundoff(); }

double read_element(DataType type, const void* memory, std::int64_t offset) {
  return with_element(type, [&](auto element) {
    std::memcpy(&element, static_cast<const std::byte*>(memory) + offset * sizeof element,
                sizeof element);
    return to_double(element);
  });
}

void parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  constexpr std::int64_t share = 64;  // that a thread takes at a time
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t begin; (begin = next.fetch_add(share)) < count;)
      for (std::int64_t i = begin; i < std::min(begin + share, count); ++i) body(i);
  };
  const std::int64_t wanted =
      threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (std::int64_t i = 1; i < std::min(wanted, count / share + 1); ++i) helpers.emplace_back(work);
  work();
}

double activate(const Activation& activation, double x) {
  const double coef = activation.coefficient;
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY: return x;
    case KILN_ACTIVATION_SIGMOID: return 1 / (1 + std::exp(-x));
    case KILN_ACTIVATION_RELU: return x > 0 || std::isnan(x) ? x : 0;
    case KILN_ACTIVATION_TANH: return std::tanh(x);
    case KILN_ACTIVATION_CLIPPED_RELU: return std::isnan(x) ? x : std::min(std::max(x, 0.0), coef);
    case KILN_ACTIVATION_LEAKY_RELU: return x > 0 ? x : coef * x;
    case KILN_ACTIVATION_ELU: return x > 0 ? x : coef * std::expm1(x);
    case KILN_ACTIVATION_GELU_ERF: return x / 2 * std::erfc(-x / std::numbers::sqrt2);
    case KILN_ACTIVATION_GELU_TANH: {
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * inner));  // (1 + tanh(t)) / 2 without cancellation
    }
    case KILN_ACTIVATION_SILU: return x / (1 + std::exp(-x));
    case KILN_ACTIVATION_SOFTPLUS: return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case KILN_ACTIVATION_HARD_SWISH: return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
  }
  return std::nan("");
}

double brief_error(DataType result) { return size_of(result) == 2 ? 0x1p-14 : 0; }

double activation_gradient(const Activation& activation, double x) {
  switch (activation.mode) {
    case KILN_ACTIVATION_GELU_ERF:
      return std::erfc(-x / std::numbers::sqrt2) / 2 +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case KILN_ACTIVATION_GELU_TANH: {
      const double slope = std::sqrt(2 / std::numbers::pi);
      const double inner = slope * (x + 0.044715 * x * x * x);
      const double half = 1 / (1 + std::exp(-2 * inner));  // (1 + tanh) / 2
      return half + x * 2 * half * (1 - half) * slope * (1 + 3 * 0.044715 * x * x);
    }
    case KILN_ACTIVATION_SILU: {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
    case KILN_ACTIVATION_SOFTPLUS: return 1 / (1 + std::exp(-x));
    case KILN_ACTIVATION_HARD_SWISH: {
      if (std::isnan(x)) return x;
      return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    }
    case KILN_ACTIVATION_LEAKY_RELU:  // a negative slope makes y positive on both sides
      return std::isnan(x) ? x : x > 0 ? 1 : activation.coefficient;
    default: return activation_gradient_from_output(activation, activate(activation, x));
  }
}

double activation_gradient_from_output(const Activation& activation, double y) {
  const double coef = activation.coefficient;
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY: return 1;
    case KILN_ACTIVATION_SIGMOID: return y * (1 - y);
    case KILN_ACTIVATION_RELU: return std::isnan(y) ? y : y > 0 ? 1 : 0;
    case KILN_ACTIVATION_TANH: return 1 - y * y;
    case KILN_ACTIVATION_CLIPPED_RELU: return std::isnan(y) ? y : y > 0 && y < coef ? 1 : 0;
    case KILN_ACTIVATION_LEAKY_RELU: return std::isnan(y) ? y : y > 0 ? 1 : coef;
    case KILN_ACTIVATION_ELU: return y > 0 ? 1 : y + coef;
    default: return std::nan("");
  }
}

}  // namespace kiln::reference
