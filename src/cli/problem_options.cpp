#include "cli/problem_options.hpp"

#include <charconv>

#include "cli/commands.hpp"
#include "core/error.hpp"
#include "engines/engine.hpp"

namespace kiln::cli {
namespace {

// Replaces the strides of `tensor` by those of an option's text.
void set_strides(Tensor& tensor, const char* option, const std::string& text) {
  if (text.empty()) return;
  const auto wrong = [&](const std::string& found) {
    fail(KILN_STATUS_BAD_PARAM, option, " is ", text, " (", found, "); expected ", tensor.rank,
         " whole numbers separated by ':', outermost dimension first");
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < tensor.rank; ++i) {
    if (i > 0) {
      if (at == end || *at != ':') wrong(cat("only ", i, " at character ", at - text.data() + 1));
      ++at;
    }
    const auto [stop, error] = std::from_chars(at, end, tensor.strides[i]);
    if (error != std::errc()) wrong(cat("no number at character ", at - text.data() + 1));
    at = stop;
  }
  if (at != end) wrong(cat("more at character ", at - text.data() + 1));
}

}  // namespace

const char* const problem_help =
    "A PROBLEM is written as oneDNN's benchdnn writes it, entries in any order, underscores\n"
    "ignored:\n"
    "  g1mb128_ic96ih64iw64_oc128oh56ow56_kh9kw9_sh1sw1_ph0pw0_dh0dw0_n\"name\"\n"
    "g groups (1), mb batch (2), ic and oc channels in all groups; then i input, o output,\n"
    "k filter, s stride (1), p padding before, d dilation (0 is dense), each for d depth, h "
    "height\n"
    "and w width. Entries of d make it 3-D, of w alone 1-D. What a dimension leaves out it takes\n"
    "from the one above, d to h to w, unless it gives its own input and filter. A missing output\n"
    "is computed with the padding on both sides, a missing padding from the output; with both, "
    "the\n"
    "padding after is what the output implies.";

DataType type_of(const std::string& name) {
  DataType type;
  if (!parse_type(name, type)) throw UsageError(cat("no data type is named ", name));
  return type;
}

kilnTensorFormat_t layout_of(const std::string& name) {
  return name == "nhwc" ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
}

void ProblemOptions::add_to(CLI::App& command) {
  command.add_option("--dt", type, "Data type of x, w and y")
      ->check(CLI::IsMember(type_names))
      ->capture_default_str();
  command.add_option("--layout", layout, "Layout of x, w and y")
      ->check(CLI::IsMember(layout_names))
      ->capture_default_str();
  command.add_option("--mode", mode, "Cross-correlation, or convolution with the filter flipped")
      ->check(CLI::IsMember({"xcorr", "conv"}))
      ->capture_default_str();
  const char* const what = "Strides in elements instead of the layout's, outermost first";
  command.add_option("--x-strides", x_strides, what)->type_name("A:B:...");
  command.add_option("--w-strides", w_strides, what)->type_name("A:B:...");
  command.add_option("--y-strides", y_strides, what)->type_name("A:B:...");
}

ConvolutionProblem ProblemOptions::make(const ConvolutionLine& line) const {
  ConvolutionOperands operands =
      describe_convolution(line, type_of(type), layout_of(layout),
                           mode == "conv" ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
  set_strides(operands.x, "--x-strides", x_strides);
  set_strides(operands.w, "--w-strides", w_strides);
  set_strides(operands.y, "--y-strides", y_strides);
  return make_convolution(operands.spec, operands.x, operands.w, operands.y);
}

void check_engine(const std::string& name) {
  if (name.empty()) return;
  std::string names;
  for (const Engine* engine : engines()) {
    if (engine->name() == name) return;
    names += cat(names.empty() ? "" : ", ", engine->name());
  }
  throw UsageError(cat("--engine is ", name, "; expected one of ", names));
}

Proposal choose_kernel(const ConvolutionProblem& problem, const DeviceDescription& device,
                       const std::string& only_engine) {
  std::string reasons;
  for (const Engine* engine : engines()) {
    if (!only_engine.empty() && engine->name() != only_engine) continue;
    auto answer = engine->propose(problem, device);
    if (auto* proposal = std::get_if<Proposal>(&answer)) return std::move(*proposal);
    reasons +=
        cat(reasons.empty() ? "" : "; ", engine->name(), ": ", std::get<Refusal>(answer).reason);
  }
  fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", to_line(problem), ": ", reasons);
}

std::shared_ptr<Device> device_of(const std::string& name) {
  if (name == "host") return open_host_device();
  int ordinal = 0;
  if (!name.empty() && name != "cuda") {
    const std::size_t prefix = sizeof "cuda:" - 1;
    const char* const end = name.data() + name.size();
    const bool is_cuda = name.starts_with("cuda:") && name.size() > prefix;
    const auto [stop, error] =
        is_cuda ? std::from_chars(name.data() + prefix, end, ordinal) : std::from_chars_result{};
    if (!is_cuda || error != std::errc() || stop != end || ordinal < 0) {
      throw UsageError(cat("--device is ", name, "; expected cuda, cuda:N or host"));
    }
  }
  std::string why;
  const std::size_t count = list_cuda_devices(why).size();
  if (count == 0) throw UsageError(cat("no GPU (", why, "); use --device host"));
  if (static_cast<std::size_t>(ordinal) >= count) {
    throw UsageError(cat("--device is cuda:", ordinal, "; expected at most cuda:", count - 1));
  }
  return open_cuda_device(ordinal);
}

DeviceDescription architecture_of(const std::string& arch) {
  return arch == "host" ? open_host_device()->description() : known_architecture(arch);
}

}  // namespace kiln::cli
