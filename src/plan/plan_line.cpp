#include "plan/plan_line.hpp"

#include <atomic>
#include <set>
#include <span>

#include "cache/store/files.hpp"
#include "core/config.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"
#include "device/chip_name.hpp"

namespace kiln {

std::string plan_line(const Problem& problem, const DeviceDescription& device, const Grant& grant) {
  return cat(command_of(problem), " ", plan_words(problem, device, grant));
}

std::string plan_words(const Problem& problem, const DeviceDescription& device,
                       const Grant& grant) {
  return cat("--arch ", chip_name(device), " ", flags_of(grant), line_of(problem));
}

void record_plan(const Problem& problem, const DeviceDescription& device, const Grant& grant) {
  const std::string& path = config().record_file;
  if (path.empty()) return;
  static constinit PerProcess<std::set<std::string>> recorded("recorded plans");
  const std::string line = plan_line(problem, device, grant) + "\n";
  const auto lines = recorded.lock();
  if (lines->contains(line)) return;
  static constinit std::atomic<bool> warned{false};
  const int error = cache::append_to_file(path, std::as_bytes(std::span(line)));
  if (error == 0)
    lines->insert(line);
  else if (!warned.exchange(true))
    log::warn(
        cat("KILN_RECORD is ", path, ", which cannot be written: ", cache::error_text(error)));
}

}  // namespace kiln
