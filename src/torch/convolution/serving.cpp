#include "torch/convolution/serving.hpp"

#include <atomic>
#include <utility>

namespace kiln::torch {
namespace {

std::atomic<bool> enabled_on_cuda{false}, enabled_on_cpu{false};
thread_local bool recorded_thread = false;

}  // namespace

PlanRequest request_of(const Tensor& x, const Geometry& geometry) {
  PlanRequest request;
  const bool cuda = device_kind_of(x) == KILN_DEVICE_CUDA;
  request.type = type_of(x);
  request.device_kind = device_kind_of(x);
  request.device_index = cuda ? x.device_index() : 0;
  request.rank = x.rank();
  const bool tf32 = cuda && request.type == KILN_DATA_FLOAT && flags().allow_tf32;
  request.math = tf32 ? KILN_MATH_TF32 : KILN_MATH_DEFAULT;
  request.alignment = 16;
  request.activation = KILN_ACTIVATION_IDENTITY;
  request.set(geometry);
  return request;
}

Format format_of(const Tensor& x, const Tensor& w, const Arguments& arguments) {
  const Format format = result_format(x, w);
  const bool asks =
      x.rank() == 5 && format == Format::channels_last && device_kind_of(x) == KILN_DEVICE_HOST;
  if (!asks || native_is_channels_last(x, w, arguments)) return format;
  return Format::contiguous;
}

PlanRequest::Side side_in_format(const Tensor& tensor, Format format) {
  PlanRequest::Side side{};
  std::ranges::copy(tensor.sizes(), side.sizes.begin());
  if (lies_in_order(tensor, format))
    std::ranges::copy(tensor.strides(), side.strides.begin());
  else
    side.strides = dense_strides(format, tensor.rank(), side.sizes);
  return side;
}

const void* address_in_format(const Tensor& tensor, Format format) {
  return lies_in_order(tensor, format) ? tensor.data() : nullptr;
}

void note_refusal(Pass pass, const Tensor& x, const Tensor& w, const Geometry& geometry,
                  Refusal refusal) {
  PlanRequest request;
  request.pass = pass;
  request.refusal = reinterpret_cast<std::uint64_t>(refusal);
  request.set(geometry);
  if (x.defined()) {
    request.type = x.type();
    request.rank = x.rank();
    request.set(request.a, x);
  }
  if (w.defined()) request.set(request.b, w);
  const auto entry = find_entry(request);
  if (entry->state() == PlanEntry::State::fresh) entry->refuse(refusal);
  entry->count(false);
}

void set_enabled(bool cuda, bool enabled) {
  (cuda ? enabled_on_cuda : enabled_on_cpu).store(enabled, std::memory_order_relaxed);
}

bool is_enabled(const Tensor& x) {
  const bool cuda = x.defined() && x.device_type() == libtorch().cuda;
  return (cuda ? enabled_on_cuda : enabled_on_cpu).load(std::memory_order_relaxed) &&
         !recorded_thread;
}

bool set_recorded(bool recorded) { return std::exchange(recorded_thread, recorded); }

Refusal check_flags() {
  return flags().cudnn_enabled ? nullptr : "torch.backends.cudnn.enabled is False";
}

}  // namespace kiln::torch
