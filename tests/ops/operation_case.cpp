#include "operation_case.hpp"

#include <cmath>

namespace test {

namespace {

// A GPU is always asked: what it answers also depends on its driver, and it is quick.
bool can_remember(const Plan& plan) {
  for (const Plan::Step& step : plan.steps())
    if (!step.launch.maps.empty()) return false;
  return plan.device().description().kind == KILN_DEVICE_HOST;
}

}  // namespace

HostTensor OperationCase::run_plan(const FinalizeOptions& options) const {
  const std::shared_ptr<Device> on = device();
  Plan plan(on, problem);
  plan.finalize(options);
  // The workspace is filled with bytes that are NaN in every type.
  const DeviceBuffer lent(*on, std::vector<std::byte>(plan.workspace_bytes(), std::byte{0xff}));
  const Workspace workspace{lent.address(), plan.workspace_bytes()};
  const auto execute = [&] {
    return run(*on, [&](std::span<void* const> operands) {
      plan.execute(operands, scalars, nullptr, {}, workspace);
    });
  };
  HostTensor out = result();
  out.read(can_remember(plan) ? kiln_test::remembered(question_of(plan), execute) : execute());
  return out;
}

// Everything that decides the result: each kernel (the hash of its key covers text, options and
// compiler), its launch, and the data.
kiln_test::Question OperationCase::question_of(const Plan& plan) const {
  kiln_test::Question question;
  for (const Plan::Step& step : plan.steps()) {
    const LaunchSpec& launch = step.launch;
    question.add(step.kernel->image->key).add(step.kernel->image->spec.entry);
    question.add(step.kernel->image->spec.shared_memory).add(launch.empty);
    question.add(launch.shape.grid);
    question.add(launch.shape.block).add(launch.shape.cluster).add(launch.shape.shared_memory);
    question.add(std::span<const std::byte>(launch.parameters));
    for (const LaunchSpec::Patch& patch : launch.patches)
      question.add(patch.hole).add(patch.operand).add(patch.offset);
    for (const LaunchSpec::Stride& stride : launch.strides)
      question.add(stride.each).add(stride.place).add(stride.level);
  }
  for (const Loop& loop : plan.loops())
    question.add(loop.begin).add(loop.end).add(loop.times).add(loop.level);
  question.add(plan.workspace_bytes());
  question.add(scalars.alpha).add(scalars.beta).add(scalars.alpha2);
  for (const HostTensor& tensor : tensors) question.add(std::span<const std::byte>(tensor.bytes()));
  return question;
}

HostTensor run_proposal(const OperationCase& item, const Proposal& proposal) {
  FinalizeOptions options;
  options.choice = Choice{proposal, 0, false};
  return item.run_plan(options);
}

std::string check(const OperationCase& item, const std::string& engine) {
  const std::string fault = item.fault(item.run_plan(engine));
  return fault.empty() ? "" : cat(text_of(item.problem), ": ", fault);
}

void scale_f32(HostTensor& tensor, int power) {
  for (double& value : tensor.values) value = static_cast<float>(std::ldexp(value, power));
}

double relative_rms(const std::vector<double>& got, const std::vector<double>& want, int power) {
  double squares = 0, sizes = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double size = std::ldexp(want[i], -power), off = std::ldexp(got[i], -power) - size;
    squares += off * off;
    sizes += size * size;
  }
  return std::sqrt(squares / sizes);
}

}  // namespace test
