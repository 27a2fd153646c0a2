#include "plan/recorder.hpp"

#include <mutex>
#include <set>
#include <span>

#include "cache/files.hpp"
#include "core/config.hpp"
#include "core/log.hpp"
#include "core/per_process.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

struct Recorded {
  std::mutex mutex;
  std::set<std::string> lines;
};

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
                          const std::string& only_engine) {
  return cat("{\"command\":", quoted(command_of(problem)),
             ",\"problem\":", quoted(line_of(problem)), ",\"architecture\":", quoted(device.arch),
             ",\"multiprocessors\":", device.multiprocessors,
             only_engine.empty() ? "" : cat(",\"only_engine\":", quoted(only_engine)), "}");
}

void record_plan(const Problem& problem, const DeviceDescription& device,
                 const std::string& only_engine) {
  const std::string& path = config().record_file;
  if (path.empty()) return;
  static PerProcess<Recorded> instance;
  Recorded& recorded = instance.get();
  const std::string line = manifest_line(problem, device, only_engine) + "\n";
  const std::lock_guard lock(recorded.mutex);
  if (!recorded.lines.insert(line).second) return;
  const int error = cache::append_to_file(path, std::as_bytes(std::span(line)));
  if (error != 0 && recorded.lines.size() == 1)
    log::warn(
        cat("KILN_RECORD is ", path, ", which cannot be written: ", cache::error_text(error)));
}

}  // namespace kiln
