// cuDNN's convolutions: every algorithm that takes the problem is tried, and the fastest of them,
// with no workspace and with any, are measured beside Kiln.
#include <algorithm>
#include <functional>
#include <limits>

#include "cli/bench/cudnn_api.hpp"
#include "cli/format.hpp"
#include "core/error.hpp"

namespace kiln::cli::bench::cudnn {
namespace {

constexpr std::size_t most_workspace = std::size_t{8} << 30;

// Names of cuDNN's algorithms, by their number.
constexpr const char* forward_names[] = {
    "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
    "winograd",      "winograd_nonfused"};
constexpr const char* data_names[] = {"algo_0",     "algo_1",   "fft",
                                      "fft_tiling", "winograd", "winograd_nonfused"};
constexpr const char* filter_names[] = {
    "algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"};

std::span<const char* const> algorithm_names(ConvolutionPass pass) {
  if (pass == ConvolutionPass::fprop) return forward_names;
  if (pass == ConvolutionPass::dgrad) return data_names;
  return filter_names;
}

struct MathType {
  int number;
  const char* name;
};

// cuDNN's math modes that are comparable with one of Kiln's. cuDNN's default mode may round f32 to
// TF32, which Kiln's default and strict modes do not allow.
std::vector<MathType> math_types(DataType type, const std::string& math) {
  if (type == KILN_DATA_DOUBLE) return {{default_math, "default"}};
  if (type == KILN_DATA_FLOAT && math != "tf32") return {{fma_math, "fma"}};
  return {{tensor_op_math, "tensor_op"}, {default_math, "default"}};
}

// The cuDNN descriptors of one problem, and calls that take them.
class Convolution {
 public:
  Convolution(Context& context, const Case& item, const ConvolutionProblem& problem)
      : context_(context), pass_(problem.pass), type_(problem.type()) {
    const auto size = [](std::int64_t value) { return static_cast<int>(value); };
    if (problem.in[0] != 1 || problem.filter[0] != 1)
      fail(KILN_STATUS_NOT_SUPPORTED, "three dimensions of space");
    for (int axis = 1; axis < 3; ++axis)
      if (output_size(problem.in[axis], problem.pad[axis], problem.pad[axis], problem.filter[axis],
                      problem.stride[axis], problem.dilation[axis]) != problem.out[axis])
        fail(KILN_STATUS_NOT_SUPPORTED, "the padding differs before and after");
    const int format = item.layout == "nhwc" ? nhwc : nchw;
    const int number = type_number(type_);
    const Api& api = context.api;
    const Dims dims = problem.w_dims();
    api.check(api.cudnnSetFilter4dDescriptor(filter_.get(), number, format, size(dims[0]),
                                             size(dims[1]), size(dims[3]), size(dims[4])),
              "cudnnSetFilter4dDescriptor");
    x_ = image(problem.x_dims(), format);
    y_ = image(problem.y_dims(), format);
    const int compute = type_number(compute_type(type_));
    api.check(
        api.cudnnSetConvolution2dDescriptor(
            convolution_.get(), size(problem.pad[1]), size(problem.pad[2]), size(problem.stride[1]),
            size(problem.stride[2]), size(problem.dilation[1]), size(problem.dilation[2]),
            problem.mode == KILN_CONVOLUTION ? flipped : cross_correlation, compute),
        "cudnnSetConvolution2dDescriptor");
    api.check(api.cudnnSetConvolutionGroupCount(convolution_.get(), size(problem.groups)),
              "cudnnSetConvolutionGroupCount");
  }

  void set_math(int math) const {
    context_.api.check(context_.api.cudnnSetConvolutionMathType(convolution_.get(), math),
                       "cudnnSetConvolutionMathType");
  }

  std::size_t workspace(int algorithm) const {
    const Api& api = context_.api;
    std::size_t bytes = 0;
    switch (pass_) {
      case ConvolutionPass::fprop:
        api.check(api.cudnnGetConvolutionForwardWorkspaceSize(context_.handle, x_->get(),
                                                              filter_.get(), convolution_.get(),
                                                              y_->get(), algorithm, &bytes),
                  "cudnnGetConvolutionForwardWorkspaceSize");
        break;
      case ConvolutionPass::dgrad:
        api.check(api.cudnnGetConvolutionBackwardDataWorkspaceSize(context_.handle, filter_.get(),
                                                                   y_->get(), convolution_.get(),
                                                                   x_->get(), algorithm, &bytes),
                  "cudnnGetConvolutionBackwardDataWorkspaceSize");
        break;
      case ConvolutionPass::wgrad:
        api.check(api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
                      context_.handle, x_->get(), y_->get(), convolution_.get(), filter_.get(),
                      algorithm, &bytes),
                  "cudnnGetConvolutionBackwardFilterWorkspaceSize");
        break;
    }
    return bytes;
  }

  void execute(int algorithm, std::size_t bytes, std::span<void* const> operands) const {
    const Api& api = context_.api;
    const void* const one = Context::scalar(type_, 1);
    const void* const zero = Context::scalar(type_, 0);
    void* const workspace = bytes == 0 ? nullptr : context_.workspace->address();
    switch (pass_) {
      case ConvolutionPass::fprop:
        api.check(
            api.cudnnConvolutionForward(context_.handle, one, x_->get(), operands[0], filter_.get(),
                                        operands[1], convolution_.get(), algorithm, workspace,
                                        bytes, zero, y_->get(), operands[2]),
            "cudnnConvolutionForward");
        break;
      case ConvolutionPass::dgrad:
        api.check(
            api.cudnnConvolutionBackwardData(context_.handle, one, filter_.get(), operands[0],
                                             y_->get(), operands[1], convolution_.get(), algorithm,
                                             workspace, bytes, zero, x_->get(), operands[2]),
            "cudnnConvolutionBackwardData");
        break;
      case ConvolutionPass::wgrad:
        api.check(api.cudnnConvolutionBackwardFilter(context_.handle, one, x_->get(), operands[0],
                                                     y_->get(), operands[1], convolution_.get(),
                                                     algorithm, workspace, bytes, zero,
                                                     filter_.get(), operands[2]),
                  "cudnnConvolutionBackwardFilter");
        break;
    }
  }

 private:
  Shared image(const Dims& dims, int format) const {
    Operand operand;
    operand.type = type_;
    operand.dims = dims;
    operand.strides =
        dense_operand_strides(format == nhwc ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, dims);
    return context_.tensor(operand, format == nhwc ? "nhwc" : "nchw");
  }

  Context& context_;
  ConvolutionPass pass_;
  DataType type_;
  Owned filter_{context_.api, context_.api.cudnnCreateFilterDescriptor,
                context_.api.cudnnDestroyFilterDescriptor, "cudnnCreateFilterDescriptor"};
  Owned convolution_{context_.api, context_.api.cudnnCreateConvolutionDescriptor,
                     context_.api.cudnnDestroyConvolutionDescriptor,
                     "cudnnCreateConvolutionDescriptor"};
  Shared x_, y_;
};

struct Candidate {
  Contestant contestant;
  double milliseconds = 0;       // the least time of a few executions
  std::function<double()> once;  // executes it once more, in milliseconds; empty: not needed
};

// Milliseconds that a first execution may take longer than later ones, because it loads kernels.
constexpr double loading = 500;

// Whether an execution takes so long that loading kernels does not matter. Some algorithms take ten
// seconds, and are not executed again.
bool settled(double milliseconds) { return milliseconds > 10 * loading; }

// Executes candidates that may be the fastest twice more, because a first execution loads kernels.
void look_again(std::vector<Candidate>& candidates) {
  constexpr double hopeless = 5;  // times the time of the fastest
  for (const bool any_workspace : {false, true}) {
    double fastest = std::numeric_limits<double>::infinity();
    const auto takes_part = [&](const Candidate& candidate) {
      return any_workspace || candidate.contestant.workspace == 0;
    };
    for (const Candidate& candidate : candidates)
      if (takes_part(candidate)) fastest = std::min(fastest, candidate.milliseconds);
    const double limit = std::max(hopeless * fastest, loading);
    for (Candidate& candidate : candidates) {
      if (!takes_part(candidate) || !candidate.once || candidate.milliseconds > limit ||
          settled(candidate.milliseconds))
        continue;
      for (int i = 0; i < 2; ++i)
        candidate.milliseconds = std::min(candidate.milliseconds, candidate.once());
      candidate.once = nullptr;
    }
  }
}

// The fastest candidate by those executions, and those so near that only the measurement can tell.
std::vector<Candidate*> shortlist(std::vector<Candidate>& candidates, bool any_workspace) {
  std::vector<Candidate*> out;
  for (Candidate& candidate : candidates)
    if (any_workspace || candidate.contestant.workspace == 0) out.push_back(&candidate);
  std::sort(out.begin(), out.end(), [](const Candidate* a, const Candidate* b) {
    return a->milliseconds < b->milliseconds;
  });
  // near: times the fastest one's time; slow: milliseconds from which on one candidate is enough.
  constexpr double near = 1.1, slow = 100;
  const std::size_t most = !out.empty() && out.front()->milliseconds > slow ? 1 : 3;
  while (out.size() > most ||
         (out.size() > 1 && out.back()->milliseconds > near * out.front()->milliseconds))
    out.pop_back();
  return out;
}

}  // namespace

std::vector<Contestant> convolution_contestants(Context& context, const Case& item,
                                                const ConvolutionProblem& problem,
                                                Operands& operands) {
  const std::span<const char* const> names = algorithm_names(problem.pass);
  std::vector<Candidate> candidates;
  std::string refusals;
  const BufferSet set = operands.set(0);
  for (const MathType& math : math_types(problem.type(), item.math)) {
    const auto convolution = std::make_shared<Convolution>(context, item, problem);
    convolution->set_math(math.number);
    for (int algorithm = 0; algorithm < static_cast<int>(names.size()); ++algorithm) {
      const std::string name = cat(names[algorithm], " (", math.name, " math)");
      try {
        const std::size_t bytes = convolution->workspace(algorithm);
        if (bytes > most_workspace)
          fail(KILN_STATUS_NOT_SUPPORTED, "a workspace of ", bytes_text(bytes));
        context.need_workspace(bytes);
        Candidate candidate;
        candidate.contestant.kernel = name;
        candidate.contestant.workspace = bytes;
        candidate.contestant.execute = [convolution, algorithm, bytes](const BufferSet& buffers) {
          convolution->execute(algorithm, bytes, buffers.operands);
        };
        candidate.once = [&context, &set, execute = candidate.contestant.execute] {
          return context.device.time(nullptr, 1, [&] { execute(set); });
        };
        candidate.milliseconds = candidate.once();
        // The very first execution may load the library as well.
        if (candidates.empty() && !settled(candidate.milliseconds))
          candidate.milliseconds = candidate.once();
        candidates.push_back(std::move(candidate));
      } catch (const Error& error) {
        refusals += cat(refusals.empty() ? "" : "; ", name, ": ", error.what());
      }
    }
  }
  look_again(candidates);
  for (const bool any_workspace : {false, true})
    for (Candidate* const candidate : shortlist(candidates, any_workspace))
      candidate->contestant.roles.emplace_back(any_workspace ? "cudnn legacy any"
                                                             : "cudnn legacy zero");
  std::vector<Contestant> out;
  bool zero = false;
  for (Candidate& candidate : candidates) {
    if (candidate.contestant.roles.empty()) continue;
    zero = zero || candidate.contestant.workspace == 0;
    out.push_back(std::move(candidate.contestant));
  }
  if (out.empty())
    return {refusal({"cudnn legacy zero", "cudnn legacy any"},
                    cat("no algorithm takes it: ", refusals))};
  if (!zero)
    out.push_back(
        refusal({"cudnn legacy zero"}, cat("no algorithm does without workspace: ", refusals)));
  return out;
}

}  // namespace kiln::cli::bench::cudnn
