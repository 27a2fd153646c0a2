#include "plan/recorder.hpp"

#include <atomic>
#include <set>
#include <span>

#include "cache/store/files.hpp"
#include "core/config.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string manifest_line(const Problem& problem, const DeviceDescription& device,
                          const Terms& terms) {
  return cat("{\"command\":", quoted(command_of(problem)),
             ",\"problem\":", quoted(line_of(problem)), ",\"architecture\":", quoted(device.arch),
             ",\"multiprocessors\":", device.multiprocessors,
             terms.only_engine.empty() ? "" : cat(",\"only_engine\":", quoted(terms.only_engine)),
             terms.workspace == 0 ? "" : cat(",\"workspace\":", terms.workspace), "}");
}

void record_plan(const Problem& problem, const DeviceDescription& device, const Terms& terms) {
  const std::string& path = config().record_file;
  if (path.empty()) return;
  static constinit PerProcess<std::set<std::string>> recorded("recorded plans");
  const std::string line = manifest_line(problem, device, terms) + "\n";
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
