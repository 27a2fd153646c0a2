#include "proof/slow_layers.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <variant>

#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "core/text.hpp"
#include "engines/choice.hpp"
#include "problem/line/problem_line.hpp"

namespace proof {
namespace {

using namespace kiln;

constexpr std::array<std::string_view, 4> slow_engines = {
    "direct", "wgrad_direct", "implicit_gemm_fma", "wgrad_implicit_gemm_fma"};

bool is_meant(const Problem& problem) {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr &&
         (size_of(convolution->type()) == 2 || convolution->math == KILN_MATH_TF32);
}

}  // namespace

std::vector<std::string> slow_layers(const std::vector<Problem>& problems) {
  const DeviceDescription device = cli::architecture_of("sm_90a");
  std::vector<std::string> slow;
  for (const Problem& problem : problems) {
    if (!is_meant(problem)) continue;
    std::vector<EngineRefusal> refusals;
    const Proposal proposal = choose(problem, device, {.workspace = most_workspace}, refusals);
    for (const Step& step : proposal.steps)
      if (std::ranges::find(slow_engines, step.kernel.engine) != slow_engines.end())
        slow.push_back(cat(step.kernel.engine, " ", text_of(problem)));
  }
  std::ranges::sort(slow);  // a layer may have several steps
  slow.erase(std::unique(slow.begin(), slow.end()), slow.end());
  return slow;
}

std::vector<std::string> changes_of_slow_layers(const std::vector<std::string>& slow,
                                                const std::string& file) {
  std::set<std::string> known;
  for (const NumberedLine& line : problem_lines(cli::read_file(file))) known.insert(line.text);
  std::vector<std::string> changes;
  for (const std::string& line : slow)
    if (known.erase(line) == 0) changes.push_back(cat("new: ", line));
  for (const std::string& line : known) changes.push_back(cat("no longer slow: ", line));
  return changes;
}

}  // namespace proof
