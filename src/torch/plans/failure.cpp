#include "torch/plans/failure.hpp"

#include <atomic>

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {
namespace {

std::atomic<unsigned> warned{0};  // a bit for each status

bool is_failure(kilnStatus_t status) {
  return status != KILN_STATUS_SUCCESS && status != KILN_STATUS_NOT_SUPPORTED &&
         status != KILN_STATUS_NOT_CACHED;
}

}  // namespace

void warn_of_failure(kilnStatus_t status, Pass pass, const std::string& why) {
  const auto warn = libtorch().aoti_torch_warn;
  const unsigned bit = 1U << static_cast<unsigned>(status);
  if (warn == nullptr || !is_failure(status) || (warned.fetch_or(bit) & bit) != 0) return;
  const std::string text = std::string("Kiln can make no kernel of the pass \"") + name_of(pass) +
                           "\", so PyTorch computes it: " + why +
                           "\nkiln.torch.report() lists all such calls; this warning comes once "
                           "for each kind of failure.";
  warn(static_cast<const char*>(__func__), "kiln/torch", 0, text.c_str());
}

}  // namespace kiln::torch
