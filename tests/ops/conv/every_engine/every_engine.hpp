// The engines that take a problem, each with the kernels that it would choose.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engines/choice.hpp"
#include "ops/operation_case.hpp"

namespace test {

// For each engine, the best tile among the candidates that `wanted` accepts: with a split count of
// one and, with in_parts, also with a larger one, which is the same kernel.
template <class Wanted>
std::vector<Option> one_of_each(const Problem& problem, bool in_parts, const Wanted& wanted) {
  std::vector<Option> some;
  std::map<std::string, std::string> tiles;
  std::set<std::pair<std::string, bool>> seen;
  for (Option& option : all_candidates(problem, device()->description())) {
    const auto& [engine, tile, parts] = option.name;
    if (parts > 1 && !in_parts) continue;
    if (!wanted(option)) continue;
    if (tiles.try_emplace(engine, tile).first->second != tile) continue;
    if (seen.emplace(engine, parts > 1).second) some.push_back(std::move(option));
  }
  return some;
}

}  // namespace test
