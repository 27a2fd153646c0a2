#include "cli/device/device_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "device/chip_name.hpp"
#include "engines/method.hpp"
#include "engines/names.hpp"

namespace kiln::cli {

void add_grant_options(Command app, Grant& grant) {
  app.add_option("--workspace", grant.workspace,
                 "Bytes of device memory that kernels may use as workspace")
      .show_default();
  app.add_option("--engine", grant.only_engine, "Use this engine alone")
      .replace([](const std::string& given) { return std::string(engine_name(given)); });
}

void check_engine(const std::string& name) {
  if (name.empty()) return;
  std::string names;
  for (const Method* method : methods()) {
    if (method->name() == name) return;
    names += cat(names.empty() ? "" : ", ", method->name());
  }
  throw UsageError(cat("--engine is ", name, "; expected one of ", names));
}

namespace {

// The number behind "cuda:"; 0 for "" and "cuda". Throws UsageError for what is no device's name.
int ordinal_of(const std::string& name, const char* option) {
  if (name.empty() || name == "cuda" || name == "host") return 0;
  int ordinal = 0;
  const std::size_t prefix = sizeof "cuda:" - 1;
  const char* const end = name.data() + name.size();
  const bool is_cuda = name.starts_with("cuda:") && name.size() > prefix;
  const auto [stop, error] =
      is_cuda ? std::from_chars(name.data() + prefix, end, ordinal) : std::from_chars_result{};
  if (!is_cuda || error != std::errc() || stop != end || ordinal < 0)
    throw UsageError(cat(option, " is ", name, "; expected cuda, cuda:N or host"));
  return ordinal;
}

}  // namespace

void check_device_name(const std::string& name, const char* option) {
  static_cast<void>(ordinal_of(name, option));
}

std::shared_ptr<Device> device_of(const std::string& name, const char* option) {
  if (name == "host") return open_host_device();
  const int ordinal = ordinal_of(name, option);
  std::string why;
  const std::size_t count = list_cuda_devices(why).size();
  if (count == 0) throw UsageError(cat("no GPU (", why, "); use ", option, " host"));
  if (static_cast<std::size_t>(ordinal) >= count)
    throw UsageError(cat(option, " is cuda:", ordinal, "; expected at most cuda:", count - 1));
  return open_cuda_device(ordinal);
}

std::string default_architecture() {
  std::string why;
  const auto devices = list_cuda_devices(why);
  return devices.empty() ? "sm_90a" : chip_name(devices[0]);
}

DeviceDescription architecture_of(const std::string& arch) {
  return arch == "host" ? open_host_device()->description() : known_architecture(arch);
}

DeviceDescription chip_of(const std::vector<std::string>& of_the_line, const std::string& arch) {
  if (!arch.empty()) return architecture_of(arch);
  return architecture_of(of_the_line.empty() ? default_architecture() : of_the_line.front());
}

std::string device_for(const std::string& device, const std::vector<std::string>& chips) {
  if (!device.empty() || chips.empty()) return device;
  return std::ranges::all_of(chips, [](const std::string& chip) { return chip == "host"; }) ? "host"
                                                                                            : "";
}

bool is_architecture_name(std::string_view text) {
  if (text == "host") return true;
  constexpr std::size_t most_digits = 4;
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0 && digits <= most_digits &&
         (text.empty() || (text.size() == 1 && text[0] >= 'a' && text[0] <= 'z'));
}

void add_line_info_flag(Command app) {
  // The library reads the environment when the command runs, after its options are parsed.
  app.add_flag(
      "--lineinfo", [] { setenv("KILN_LINEINFO", "1", 1); },
      "Compile kernels with line information, for profilers; they have cache entries of their own");
}

}  // namespace kiln::cli
