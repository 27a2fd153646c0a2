#include "torch/control.h"

#include <map>

#include "torch/channels/operators.hpp"
#include "torch/convolution/native.hpp"
#include "torch/convolution/operators.hpp"
#include "torch/convolution/serving.hpp"
#include "torch/matmul/operators.hpp"
#include "torch/normalization/operators.hpp"
#include "torch/plans/handles.hpp"
#include "torch/policy/choices.hpp"
#include "torch/policy/policy.hpp"
#include "torch/pooling/operators.hpp"
#include "torch/report.hpp"

namespace kiln::torch {
namespace {

thread_local std::string returned;

const char* give(std::string text) {
  returned = std::move(text);
  return returned.c_str();
}

std::mutex registrations;
std::map<std::string, LibraryHandle> convolutions, fused;  // registrations, by dispatch key

bool is_cuda(const char* key) { return std::string_view(key) == "CUDA"; }

struct Operator {
  const char* name;
  Kernel kernel;
};

std::string add_library(std::map<std::string, LibraryHandle>& libraries, const char* name_space,
                        const char* key, std::initializer_list<Operator> operators) {
  const std::scoped_lock lock(registrations);
  if (libraries.contains(key)) return "";
  const LibTorch& torch = libtorch();
  LibraryHandle library = nullptr;
  if (torch.aoti_torch_library_init_impl(name_space, key, __FILE__, __LINE__, &library) != 0)
    return std::string("PyTorch opens no library for the dispatch key ") + key;
  for (const Operator& op : operators) {
    if (torch.torch_library_impl(library, op.name, op.kernel, abi_version) == 0) continue;
    torch.aoti_torch_delete_library_object(library);
    return std::string("PyTorch refused a kernel of ") + name_space + "::" + op.name + " for " +
           key;
  }
  libraries[key] = library;
  return "";
}

}  // namespace
}  // namespace kiln::torch

using namespace kiln::torch;  // NOLINT(google-build-using-namespace): only the C functions follow

const char* kilnTorchLoad(void) {
  if (kilnCheckVersion(KILN_VERSION) != KILN_STATUS_SUCCESS) return give(kilnGetLastErrorMessage());
  fork_count();
  return give(load_libtorch());
}

int kilnTorchHasBegun(void) { return has_handles() ? 1 : 0; }

const char* kilnTorchEnable(const char* key) {
  std::string why =
      add_library(convolutions, "aten", key,
                  {{"convolution", &convolution}, {"convolution_backward", &convolution_backward}});
  if (why.empty()) set_enabled(is_cuda(key), true);
  return give(std::move(why));
}

const char* kilnTorchDisable(const char* key) {
  set_enabled(is_cuda(key), false);
  return give("");
}

const char* kilnTorchRegisterFused(const char* key) {
  return give(add_library(fused, "kiln", key,
                          {{"convolution_bias_activation", &convolution_bias_activation},
                           {"convolution_into", &convolution_into},
                           {"convolution_moments", &convolution_moments},
                           {"convolution_backward", &fused_convolution_backward},
                           {"moments", &moments},
                           {"combine_moments", &combine_moments},
                           {"normalize", &normalize},
                           {"normalize_backward", &normalize_backward},
                           {"normalize_rows", &normalize_rows},
                           {"normalize_rows_backward", &normalize_rows_backward},
                           {"block", &block},
                           {"block_backward", &block_backward},
                           {"link_backward", &link_backward},
                           {"pool", &pool},
                           {"pool_backward", &pool_backward},
                           {"channel_means", &channel_means},
                           {"multiply_channels", &multiply_channels},
                           {"multiply_channels_backward", &multiply_channels_backward},
                           {"add_channels", &add_channels},
                           {"matmul_bias_activation", &matmul_bias_activation}}));
}

int kilnTorchSetRecorded(int recorded) { return set_recorded(recorded != 0) ? 1 : 0; }

void kilnTorchSetFlags(int cudnnEnabled, int benchmark, int deterministic, int allowTf32) {
  set_flags({cudnnEnabled != 0, benchmark != 0, deterministic != 0, allowTf32 != 0});
}

void kilnTorchSetPolicy(int policy) { set_policy(static_cast<Policy>(policy)); }
void kilnTorchSetThreadPolicy(int policy) { set_thread_policy(policy); }
void kilnTorchSetStandIn(int allowed) { set_stand_in(static_cast<kilnStandIn_t>(allowed)); }
void kilnTorchSetNativeError(const char* text) { set_native_error(text); }

void kilnTorchUseChoices(const char* path, int writable, const char* context) {
  use_choices_file(path, writable != 0, context);
}

void kilnTorchSetCapacity(uint64_t plans) { set_table_capacity(plans); }
void kilnTorchClear(void) { clear_table(); }

void kilnTorchWait(void) {
  for (const auto& entry : all_entries()) {
    using State = PlanEntry::State;
    if (entry->state() == State::compiling || entry->state() == State::standing_in)
      entry->finalize(nullptr);
  }
}

const char* kilnTorchReport(void) { return give(report()); }
