#include "cli/fit/fitting.hpp"

#include <set>

#include "cli/fit/constants.hpp"
#include "cli/fit/descent.hpp"
#include "cli/format.hpp"

namespace kiln::cli::fit {
namespace {

// Fits the family's constants, and changes them in `constants`.
FamilyFit fit_family(const std::string& family, FittedConstants& constants, Model& model) {
  const Engines& engines = model.engines_of(family);
  std::vector<const NamedConstant*> which;
  std::vector<double> values;
  for (const NamedConstant& constant : all_constants())
    if (constant.family == family) {
      which.push_back(&constant);
      values.push_back(constant.of(constants));
    }
  const auto with = [&](const std::vector<double>& given) {
    FittedConstants changed = constants;
    for (std::size_t i = 0; i < which.size(); ++i) which[i]->of(changed) = given[i];
    return changed;
  };
  const auto loss = [&](const std::vector<double>& given) {
    model.estimate(with(given), engines, false);
    return model.loss(engines);
  };
  FamilyFit fit{family, loss(values)};
  fit.after = descend(values, loss);
  // The measurements are not exact enough for more than three digits.
  for (double& value : values) value = std::stod(significant(value, 3));
  constants = with(values);
  return fit;
}

}  // namespace

Fitting fitted(const FittedConstants& own, Model& model, const std::vector<std::string>& families) {
  Fitting fitting{own};
  model.estimate(own, model.engines());
  for (const std::string& family : families) {
    const Quality quality = model.quality(
        model.engines_of(family), [](const MeasuredProblem& item) { return !item.left_out; });
    if (quality.problems == 0) continue;
    fitting.families.push_back(fit_family(family, fitting.constants, model));
  }
  model.estimate(fitting.constants, model.engines());
  return fitting;
}

void estimate_left_out(const FittedConstants& own, Model& model, MeasuredSet& set,
                       const std::vector<std::string>& families) {
  std::set<std::string> groups;
  for (const MeasuredProblem& item : set.problems) groups.insert(item.group);
  std::vector<MeasuredProblem> estimated = set.problems;
  for (const std::string& group : groups) {
    for (MeasuredProblem& item : set.problems) item.left_out = item.group == group;
    fitted(own, model, families);
    for (std::size_t i = 0; i < estimated.size(); ++i)
      if (estimated[i].group == group) estimated[i].candidates = set.problems[i].candidates;
  }
  for (MeasuredProblem& item : estimated) item.left_out = false;
  set.problems = std::move(estimated);
}

}  // namespace kiln::cli::fit
