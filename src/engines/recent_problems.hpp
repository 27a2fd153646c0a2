// Remembers values, by name, for the most recent convolution problems.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether two devices are equal in everything that estimates depend on.
bool estimated_alike(const DeviceDescription& a, const DeviceDescription& b);

// Keeps the values of the last `most` problems. Names have to live as long as the process.
template <class Value, std::size_t most>
class RecentProblems {
 public:
  // Null if there is none.
  std::shared_ptr<const Value> find(std::string_view name, const ConvolutionProblem& problem,
                                    const DeviceDescription& device) {
    if (const Known* const known = find(problem, device))
      for (const auto& [each, value] : known->values)
        if (each == name) return value;
    return nullptr;
  }
  void keep(std::string_view name, const ConvolutionProblem& problem,
            const DeviceDescription& device, std::shared_ptr<const Value> value) {
    if (find(problem, device) == nullptr) {
      problems_.push_front({problem, device, {}});
      if (problems_.size() > most) problems_.pop_back();
    }
    problems_.front().values.emplace_back(name, std::move(value));
  }

 private:
  struct Known {
    ConvolutionProblem problem;
    DeviceDescription device;
    std::vector<std::pair<std::string_view, std::shared_ptr<const Value>>> values;
  };

  // Null, or the problem, which it moves to the front.
  const Known* find(const ConvolutionProblem& problem, const DeviceDescription& device) {
    for (auto each = problems_.begin(); each != problems_.end(); ++each) {
      if (each->problem.batch != problem.batch || each->problem != problem ||
          !estimated_alike(each->device, device))
        continue;
      problems_.splice(problems_.begin(), problems_, each);
      return &problems_.front();
    }
    return nullptr;
  }

  std::list<Known> problems_;  // most recent first
};

}  // namespace kiln
