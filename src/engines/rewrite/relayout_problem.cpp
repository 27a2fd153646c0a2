#include "engines/rewrite/relayout_problem.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/rewrite/layout.hpp"

namespace kiln {
namespace {

constexpr std::int64_t alignment = 16;  // bytes, of every operand

void pick(RelayoutTensor& tensor, const ConvolutionProblem& problem,
          RelayoutTensor::Pixels pixels) {
  tensor.pixels = pixels;
  tensor.copied = problem.out;
  tensor.stride = problem.stride;
}

// Whether only the pixels of x that the stride reaches are copied, because no tap reads the others.
bool picks_pixels(const ConvolutionProblem& problem) {
  if (problem.x_strides[1] == 1) return false;
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

const char* read_name(const ConvolutionProblem& problem) {
  return problem.pass == ConvolutionPass::dgrad ? "dy" : "x";
}

Refusal refusal(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (size_of(problem.type()) > 4)
    return cat("the data type is ", name_of(problem.type()),
               "; this engine takes f16, bf16 and f32");
  if (auto refused = warpgroup_refusal(device)) return refused;
  if (problem.batch == 0) return "the batch is empty";
  if (problem.alignment < alignment)
    return cat("the alignment is ", problem.alignment, " bytes; expected ", alignment,
               ", in which copies are made");
  const std::vector<Operand> operands = operands_of(problem);
  const RelayoutTensor read = relayout_tensor(problem, operands, read_name(problem));
  // The copy would be identical to the tensor, and the inner problem to this one.
  if (read.channels == 1)
    return cat(read_name(problem),
               " has one channel, so channels-last layout would be the same as the layout it has");
  const bool padded = padded_channels(problem, problem.in_channels) != problem.in_channels ||
                      padded_channels(problem, problem.out_channels) != problem.out_channels;
  if (!is_planar(read) && !padded)
    return cat("the channels of ", read_name(problem),
               " are contiguous already, and none are to be padded to a multiple of ", alignment,
               " bytes");
  for (const Operand& operand : operands) {
    if (operand.name == std::string_view("bias") || operand.name == std::string_view("w") ||
        operand.name == std::string_view("dw"))
      continue;
    const RelayoutTensor tensor = relayout_tensor(problem, operands, operand.name);
    if (!is_planar(tensor) && !is_padded(tensor)) continue;
    if (auto refused = copy_refusal(operand, tensor)) return refused;
  }
  return {};
}

Dims channels_last(const Dims& dims) { return dense_operand_strides(KILN_TENSOR_NHWC, dims); }

// The inner problem if x, y and z are copied; the filter is still the caller's. Padding is zeros in
// both factors of every product, so infinities in other channels cannot turn it into NaN. Padding
// of results is never copied out.
RelayoutProblem unfiltered(const ConvolutionProblem& problem) {
  RelayoutProblem out;
  ConvolutionProblem& inner = out.inner = problem;
  inner.in_channels = padded_channels(problem, problem.in_channels);
  inner.out_channels = padded_channels(problem, problem.out_channels);
  out.padded =
      inner.in_channels != problem.in_channels || inner.out_channels != problem.out_channels;
  if (picks_pixels(problem)) {
    inner.in = problem.out;
    inner.stride = {1, 1, 1};
  }
  inner.x_strides = channels_last(inner.x_dims());
  inner.y_strides = channels_last(inner.y_dims());
  if (problem.epilogue.residual) inner.z_strides = channels_last(inner.result_dims());
  return out;
}

// Makes the inner problem use the caller's tensor. Returns the reason why it cannot, or "".
Refusal leave(RelayoutProblem& out, const RelayoutTensor& tensor, const Operand& operand) {
  const std::string_view name = operand.name;
  ConvolutionProblem& inner = out.inner;
  (name == "z"                   ? inner.z_strides
   : name == "x" || name == "dx" ? inner.x_strides
                                 : inner.y_strides) = operand.strides;
  out.as_they_lie.push_back(tensor);
  return apart_refusal(operand);
}

// Copies the filter with its output channels innermost: it counts as one image that has the output
// channels as channels, and input channels x taps as pixels. Returns the reason why it cannot, or
// "".
Refusal turn_filter(RelayoutProblem& out, RelayoutTensor filter,
                    const ConvolutionProblem& problem) {
  const std::int64_t channels = problem.group_in(), taps = problem.taps();
  if (channels > 1 && problem.w_strides[1] != taps)
    return cat("the channel stride of w is ", problem.w_strides[1], "; expected ", taps,
               ", the taps of a channel");
  filter.order = RelayoutTensor::Order::planes;
  filter.images = filter.copied_images = 1;
  filter.channels = problem.out_channels;
  filter.copied_channels = out.inner.out_channels;
  filter.channel_stride = problem.w_strides[0];
  filter.image_stride = 0;
  filter.plane = filter.copied = {1, 1, channels * taps};
  Dims& strides = out.inner.w_strides;
  std::int64_t next = out.inner.out_channels;
  strides[0] = 1;
  for (const int i : {2, 1, 0}) {
    strides[2 + i] = problem.filter[i] == 1 ? 0 : next;
    next *= problem.filter[i];
  }
  strides[1] = channels > 1 ? next : 0;
  out.once.push_back(filter);
  return {};
}

// Adds the filter to what is copied, if it has to be. Returns the reason why it cannot, or "".
Refusal add_filter(RelayoutProblem& out, const std::vector<Operand>& operands,
                   const ConvolutionProblem& problem) {
  const RelayoutTensor filter = relayout_tensor(problem, operands, "w");
  // wgmma reads f32 only with the reduction contiguous, which for data gradients runs over the
  // output channels. The dense engine itself transposes channels-last filters of several taps.
  const bool turned = problem.pass == ConvolutionPass::dgrad && problem.type() == KILN_DATA_FLOAT &&
                      filter.copied_channels == filter.channels &&
                      (is_planar(filter) || problem.taps() == 1);
  if (!is_planar(filter) && !is_padded(filter) && !turned) return {};
  if (auto refused = copy_refusal(operands[filter.operand], filter)) return refused;
  if (turned) return turn_filter(out, filter, problem);
  out.once.push_back(filter);
  out.inner.w_strides = channels_last(out.inner.w_dims());
  return {};
}

// Copies the bias if the result's copy has more channels, because every channel's bias is read.
void add_bias(RelayoutProblem& out, const std::vector<Operand>& operands,
              const ConvolutionProblem& problem) {
  if (!problem.epilogue.bias || problem.bias_stride == 0) return;
  const RelayoutTensor bias = relayout_tensor(problem, operands, "bias");
  if (!is_padded(bias)) return;
  out.once.push_back(bias);
  out.inner.bias_stride = 1;
}

void set_cut(RelayoutProblem& out, RelayoutCut cut) {
  out.cut = std::move(cut);
  for (RelayoutTensor& tensor : out.tensors) tensor.cut = out.cut.dim;
}

void add_cut(RelayoutProblem& out) {
  set_cut(out, cut_of(out.inner, out.tensors, out.as_they_lie));
}

}  // namespace

bool RelayoutProblem::cut_inside_planes() {
  if (cut.dim != ConvolutionProblem::depth || inner.in[ConvolutionProblem::depth] == 1)
    return false;
  RelayoutCut inside = kiln::cut_inside_planes(inner, tensors, as_they_lie);
  if (inside.granule == 0) return false;
  set_cut(*this, std::move(inside));
  return true;
}

std::size_t RelayoutProblem::bytes(const RelayoutChunk& chunk) const {
  std::size_t bytes = 0;
  for (const RelayoutTensor& tensor : tensors) bytes += range(tensor, chunk).bytes(tensor);
  return bytes;
}

std::variant<RelayoutProblem, Refusal> relayout_gather(const ConvolutionProblem& problem,
                                                       const DeviceDescription& device,
                                                       bool copy_results) {
  if (auto refused = refusal(problem, device)) return refused;
  const bool dgrad = problem.pass == ConvolutionPass::dgrad, picks = picks_pixels(problem);
  const std::vector<Operand> operands = operands_of(problem);
  RelayoutProblem out = unfiltered(problem);
  if (auto refused = add_filter(out, operands, problem)) return refused;
  add_bias(out, operands, problem);
  bool has_choice = false;
  for (const char* const name : {read_name(problem), "z", operands.back().name}) {
    if (name == std::string_view("z") && !problem.epilogue.residual) continue;
    RelayoutTensor tensor = relayout_tensor(problem, operands, name);
    const bool source = tensor.role == RelayoutTensor::Role::source;
    const bool choice = !source && is_planar(tensor) && !is_padded(tensor);
    has_choice = has_choice || choice;
    if (picks && source != dgrad && tensor.role != RelayoutTensor::Role::residual) {
      pick(tensor, problem,
           dgrad ? RelayoutTensor::Pixels::spread : RelayoutTensor::Pixels::picked);
      if (choice && !copy_results)
        return Refusal{
            "the convolution's stride leaves out pixels of dx, which only a copy of dx sets"};
    }
    if (choice ? copy_results : is_planar(tensor) || is_padded(tensor)) {
      out.tensors.push_back(tensor);
      continue;
    }
    if (auto refused = leave(out, tensor, operands[tensor.operand])) return refused;
  }
  if (copy_results && !has_choice)
    return Refusal{"results already have channels last, so none are to be copied"};
  add_cut(out);
  return out;
}

std::variant<RelayoutProblem, Refusal> relayout_wgrad(const ConvolutionProblem& problem,
                                                      const DeviceDescription& device, bool copy_dy,
                                                      WgradResult result) {
  if (auto refused = refusal(problem, device)) return refused;
  const std::vector<Operand> operands = operands_of(problem);
  RelayoutProblem out = unfiltered(problem);
  for (const char* const name : {"x", "dy"}) {
    RelayoutTensor tensor = relayout_tensor(problem, operands, name);
    const bool of_x = name == std::string_view("x");
    if (of_x && picks_pixels(problem)) pick(tensor, problem, RelayoutTensor::Pixels::picked);
    const bool choice = !of_x && is_planar(tensor) && !is_padded(tensor);
    if (!copy_dy && !of_x && !choice)
      return Refusal{"dy already has channels last, so it is not to be copied"};
    if (choice ? copy_dy : is_planar(tensor) || is_padded(tensor)) {
      out.tensors.push_back(tensor);
      continue;
    }
    if (auto refused = leave(out, tensor, operands[tensor.operand])) return refused;
  }
  add_cut(out);
  const bool copied = result == WgradResult::copied;
  if (result == WgradResult::sums || (!out.padded && !copied)) return out;
  const RelayoutTensor dw = relayout_tensor(problem, operands, "dw");
  if (copied && (is_padded(dw) || !is_planar(dw)))
    return Refusal{is_planar(dw) ? "dw is padded, so it is copied in any case"
                                 : "dw already has channels last, so it is not to be copied"};
  if (copied && dw.type == KILN_DATA_FLOAT)
    return Refusal{"dw is f32, so a copy of it would be the same as sums in f32"};
  if (auto refused = copy_refusal(operands[dw.operand], dw)) return refused;
  out.once.push_back(dw);
  out.inner.w_strides = channels_last(out.inner.w_dims());
  return out;
}

}  // namespace kiln
