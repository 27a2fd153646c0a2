#include "cudnn/library/settings.hpp"

#include "core/config.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"

namespace kiln::cudnn {
namespace {

// Whether the variable is `word`. The other valid value is `otherwise`, the default.
bool is(const char* name, const char* word, const char* otherwise) {
  const std::string value = environment(name);
  if (value == word) return true;
  if (!value.empty() && value != otherwise)
    log::warn(
        cat(name, " is ", value, "; expected ", word, " or ", otherwise, ". It is ", otherwise));
  return false;
}

Settings read() {
  Settings out;
  if (is("KILN_CUDNN_DEVICE", "host", "cuda")) out.device = KILN_DEVICE_HOST;
  if (is("KILN_CUDNN_POLICY", "background", "wait")) out.policy = Policy::background;
  out.forward = environment("KILN_CUDNN_FORWARD");
  out.statuses_of_8 = is("KILN_CUDNN_STATUS", "8", "9");
  out.tf32 = environment("NVIDIA_TF32_OVERRIDE") != "0";
  return out;
}

const Settings unset;

}  // namespace

const Settings& settings() noexcept {
  static constinit Once<Settings> instance("cuDNN settings");
  try {
    return instance.get(read);
  } catch (...) {
    return unset;
  }
}

}  // namespace kiln::cudnn
