#include "cli/operation/random_fill.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "reference/element.hpp"

namespace kiln::cli {
namespace {

constexpr std::byte poison{0xff};

// A number in [-1, 1), a multiple of 2^-52.
double uniform(std::uint64_t bits) { return std::ldexp(static_cast<double>(bits >> 11), -52) - 1; }

template <class T>
void fill(T* values, std::int64_t begin, std::int64_t end, std::uint64_t seed, bool positive) {
  for (std::int64_t i = begin; i < end; ++i) {
    const double number = uniform(random_bits(seed, i));
    values[i] = reference::from_double<T>(positive ? number + 1.25 : number);
  }
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<std::byte> random_operand(const Operand& operand, DataType type, std::uint64_t seed) {
  const std::int64_t span = operand.span();
  std::vector<std::byte> memory(span * size_of(type));
  reference::with_element(type, [&](auto element) {
    using T = decltype(element);
    T* const values = reinterpret_cast<T*>(memory.data());
    constexpr std::int64_t least_share = 1 << 16;
    const std::int64_t threads = std::clamp<std::int64_t>(
        span / least_share, 1, std::max(1u, std::thread::hardware_concurrency()));
    const std::int64_t share = span / threads + 1;
    std::vector<std::jthread> helpers;
    for (std::int64_t begin = share; begin < span; begin += share) {
      helpers.emplace_back(fill<T>, values, begin, std::min(begin + share, span), seed,
                           operand.positive);
    }
    fill(values, 0, std::min(share, span), seed, operand.positive);
  });
  const std::size_t size = size_of(type);
  const std::vector<bool> members = operand.members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i]) std::fill_n(memory.begin() + i * size, size, poison);
  }
  return memory;
}

std::vector<std::byte> poisoned_operand(const Operand& operand, DataType type) {
  return std::vector<std::byte>(operand.span() * size_of(type), poison);
}

}  // namespace kiln::cli
