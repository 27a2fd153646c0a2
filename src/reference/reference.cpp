#include "reference/reference.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "reference/element.hpp"

namespace kiln::reference {

std::vector<Expected> expect(const Problem& problem, const Scalars& scalars,
                             std::span<const void* const> operands,
                             std::span<const std::int64_t> indices, int threads, int result) {
  const Request request{scalars, operands, indices, threads,
                        result < 0 ? operands.size() - 1 : static_cast<std::size_t>(result)};
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

void parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body,
              std::int64_t share) {
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

}  // namespace kiln::reference
