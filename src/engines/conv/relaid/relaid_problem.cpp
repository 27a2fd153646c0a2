#include "engines/conv/relaid/relaid_problem.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t alignment = 16;  // bytes, of every operand

Spatial space_of(const Dims& dims) { return {dims[2], dims[3], dims[4]}; }

RelaidTensor relaid(const std::vector<Operand>& operands, std::string_view name) {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [&](const Operand& each) { return each.name == name; });
  const Operand& operand = *found;
  RelaidTensor tensor;
  tensor.operand = static_cast<std::uint8_t>(found - operands.begin());
  tensor.type = operand.type;
  tensor.images = operand.dims[0];
  tensor.channels = operand.dims[1];
  tensor.image_stride = operand.strides[0];
  tensor.channel_stride = operand.strides[1];
  tensor.span = operand.span();
  tensor.plane = tensor.copied = space_of(operand.dims);
  return tensor;
}

void pick(RelaidTensor& tensor, const ConvolutionProblem& problem, RelaidTensor::Pixels pixels) {
  tensor.pixels = pixels;
  tensor.copied = problem.out;
  tensor.stride = problem.stride;
}

// Pixels of x that a stride leaves out meet no tap.
bool picks_pixels(const ConvolutionProblem& problem) {
  const ConvolutionEpilogue& epilogue = problem.epilogue;
  if (problem.pass == ConvolutionPass::dgrad &&
      (epilogue.bias || epilogue.residual || epilogue.activation.mode != KILN_ACTIVATION_IDENTITY))
    return false;
  bool strided = false;
  for (int i = 0; i < 3; ++i) {
    strided = strided || problem.stride[i] > 1;
    if (problem.pad[i] != 0 || (problem.out[i] - 1) * problem.stride[i] >= problem.in[i])
      return false;
  }
  return strided && problem.taps() == 1;
}

std::string refusal(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (size_of(problem.type()) > 4)
    return cat("the data type is ", name_of(problem.type()),
               "; this engine takes f16, bf16 and f32");
  if (auto refused = warpgroup_refusal(device)) return std::move(refused->reason);
  if (problem.batch == 0) return "the batch is empty";
  if (problem.alignment < alignment)
    return cat("the alignment is ", problem.alignment, " bytes; expected ", alignment,
               ", in which copies are made");
  // Its copy would be itself, and the problem of copies this one once more.
  const std::string_view read = problem.pass == ConvolutionPass::dgrad ? "dy" : "x";
  for (const Operand& operand : operands_of(problem)) {
    if (operand.name == std::string_view("bias") || operand.name == std::string_view("w") ||
        operand.name == std::string_view("dw"))
      continue;
    const Spatial pixels = space_of(operand.dims);
    if (operand.dims[1] > 1 && operand.strides[1] == 1)
      return cat("the channels of ", operand.name, " are contiguous already");
    if (operand.name == read && operand.dims[1] == 1)
      return cat(read, " has one channel, which lies first and last alike");
    if (std::string reason = plane_refusal(operand.name, operand.strides, pixels); !reason.empty())
      return reason;
    if (pixels[0] * pixels[1] * pixels[2] > limit32 / 4)
      return cat(operand.name, " has ", pixels[0] * pixels[1] * pixels[2],
                 " pixels; expected at most ", limit32 / 4);
  }
  return "";
}

// Of a tensor that is not copied, of which a chunk begins at any image.
std::string apart_refusal(const char* name, const RelaidTensor& tensor) {
  if (tensor.image_stride * static_cast<std::int64_t>(size_of(tensor.type)) % alignment == 0)
    return "";
  return cat("in ", name, " an image begins ", tensor.image_stride,
             " elements after the one before; expected a multiple of ", alignment, " bytes");
}

Dims channels_last(const Dims& dims) { return dense_operand_strides(KILN_TENSOR_NHWC, dims); }

RelaidProblem unfiltered(const ConvolutionProblem& problem) {
  RelaidProblem out;
  ConvolutionProblem& inner = out.inner = problem;
  if (picks_pixels(problem)) {
    inner.in = problem.out;
    inner.stride = {1, 1, 1};
  }
  inner.x_strides = channels_last(inner.x_dims());
  inner.y_strides = channels_last(inner.y_dims());
  if (problem.epilogue.residual) inner.z_strides = channels_last(inner.result_dims());
  return out;
}

// A filter whose filters shall lie side by side: as of an image of as many channels, whose pixels
// are the channels and taps of one.
std::string turn_filter(RelaidProblem& out, RelaidTensor filter,
                        const ConvolutionProblem& problem) {
  const std::int64_t channels = problem.group_in(), taps = problem.taps();
  if (channels > 1 && problem.w_strides[1] != taps)
    return cat("in w a channel begins ", problem.w_strides[1],
               " elements after the one before; expected its ", taps, " taps");
  filter.images = 1;
  filter.channels = problem.out_channels;
  filter.channel_stride = problem.w_strides[0];
  filter.image_stride = 0;
  filter.plane = filter.copied = {1, 1, channels * taps};
  Dims& strides = out.inner.w_strides;
  std::int64_t next = problem.out_channels;
  strides[0] = 1;
  for (const int i : {2, 1, 0}) {
    strides[2 + i] = problem.filter[i] == 1 ? 0 : next;
    next *= problem.filter[i];
  }
  strides[1] = channels > 1 ? next : 0;
  out.filter = filter;
  return "";
}

std::string add_filter(RelaidProblem& out, const std::vector<Operand>& operands,
                       const ConvolutionProblem& problem) {
  // Channels last already; of one tap that is the usual order.
  const bool last = problem.group_in() == 1 || problem.w_strides[1] == 1;
  const bool turned = problem.pass == ConvolutionPass::dgrad && problem.type() == KILN_DATA_FLOAT;
  if (last && !turned) return "";
  if (std::string reason = plane_refusal("w", problem.w_strides, problem.filter); !reason.empty())
    return reason;
  const RelaidTensor filter = relaid(operands, "w");
  if (turned) return turn_filter(out, filter, problem);
  out.filter = filter;
  out.inner.w_strides = channels_last(problem.w_dims());
  return "";
}

}  // namespace

std::size_t RelaidProblem::image_bytes() const {
  std::size_t bytes = 0;
  for (const RelaidTensor& tensor : tensors) bytes += tensor.image_bytes();
  return bytes;
}

std::variant<RelaidProblem, Refusal> relaid_gather(const ConvolutionProblem& problem,
                                                   const DeviceDescription& device,
                                                   bool copy_results) {
  if (std::string reason = refusal(problem, device); !reason.empty())
    return Refusal{std::move(reason)};
  const bool dgrad = problem.pass == ConvolutionPass::dgrad, picks = picks_pixels(problem);
  const std::vector<Operand> operands = operands_of(problem);
  RelaidProblem out = unfiltered(problem);
  if (std::string reason = add_filter(out, operands, problem); !reason.empty())
    return Refusal{std::move(reason)};
  RelaidTensor source = relaid(operands, dgrad ? "dy" : "x"),
               result = relaid(operands, operands.back().name);
  std::vector<RelaidTensor> results;
  if (problem.epilogue.residual) results.push_back(relaid(operands, "z"));
  if (picks)
    pick(dgrad ? result : source, problem,
         dgrad ? RelaidTensor::Pixels::spread : RelaidTensor::Pixels::picked);
  results.push_back(result);
  out.tensors = {source};
  if (copy_results) {
    out.tensors.insert(out.tensors.end(), results.begin(), results.end());
    return out;
  }
  if (picks && dgrad) return Refusal{"pixels of dx that a stride leaves out need a copy"};
  for (const RelaidTensor& tensor : results)
    if (std::string reason = apart_refusal(operands[tensor.operand].name, tensor); !reason.empty())
      return Refusal{std::move(reason)};
  (dgrad ? out.inner.x_strides : out.inner.y_strides) = operands.back().strides;
  out.inner.z_strides = problem.z_strides;
  out.as_they_lie = results;
  return out;
}

std::variant<RelaidProblem, Refusal> relaid_wgrad(const ConvolutionProblem& problem,
                                                  const DeviceDescription& device, bool copy_dy) {
  if (std::string reason = refusal(problem, device); !reason.empty())
    return Refusal{std::move(reason)};
  const std::vector<Operand> operands = operands_of(problem);
  RelaidProblem out = unfiltered(problem);
  out.tensors = {relaid(operands, "x")};
  if (picks_pixels(problem)) pick(out.tensors[0], problem, RelaidTensor::Pixels::picked);
  const RelaidTensor dy = relaid(operands, "dy");
  if (copy_dy) {
    out.tensors.push_back(dy);
    return out;
  }
  if (std::string reason = apart_refusal("dy", dy); !reason.empty())
    return Refusal{std::move(reason)};
  out.inner.y_strides = problem.y_strides;
  out.as_they_lie = {dy};
  return out;
}

}  // namespace kiln
