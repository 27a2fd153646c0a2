#include "plan/tuning.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cache/hash.hpp"
#include "cache/store/file_lock.hpp"
#include "cache/store/files.hpp"
#include "cache/store/private_directory.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/split.hpp"
#include "plan/kernel_cache.hpp"

namespace kiln {
namespace {

using Table = std::map<std::string, TunedKernel>;  // by key()
using Clock = std::chrono::steady_clock;

constexpr const char* file_name = "tuning";
constexpr const char* headline =
    "# What `kiln tune` measured: problem, device, kernel text, engine, tile, parts, "
    "microseconds, checksum\n";
constexpr std::size_t most_bytes = std::size_t{64} << 20;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

bool is_number(std::string_view text, auto& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// Adds the winners of the lines to `table`. Returns the number of lines that could not be read.
int add_lines(const std::string& text, Table& table) {
  int flaws = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    if (auto kernel = parse_tuning_line(std::string(line)))
      table.insert_or_assign(kernel->key(), std::move(*kernel));
    else
      ++flaws;
  }
  return flaws;
}

std::string folder() { return cache::settled_path(kernel_cache().directory()); }

// The content of the tuning file; "" if there is none or others may write to the folder. `error` is
// set to an errno value, 0 without an error.
std::string read_file(const std::string& directory, int& error) {
  error = 0;
  if (cache::examine(directory).is != cache::Standing::sound) return "";
  const cache::FileBytes file = cache::read_whole_file(directory + "/" + file_name, most_bytes);
  error = file.error;
  return error != 0 ? "" : std::string(reinterpret_cast<const char*>(file.data.get()), file.size);
}

// The winners in the bundles' provenance. If several bundles have one of a problem, the first
// counts.
Table read_bundles() {
  Table all;
  for (const auto& bundle : kernel_bundles()) {
    std::string flaw;
    const std::string provenance = bundle->provenance(flaw);
    if (provenance.find("\"tuning\"") == std::string::npos) continue;
    const auto json = parse_json(provenance);
    if (!json.is_object() || !json.contains("tuning") || !json["tuning"].is_array()) continue;
    std::string lines;
    for (const auto& line : json["tuning"])
      if (line.is_string()) lines += line.get<std::string>() + "\n";
    Table own;
    if (const int flaws = add_lines(lines, own); flaws > 0)
      log::warn(cat("the kernel bundle ", bundle->path(), " has ", flaws,
                    " tuning lines that are damaged or of another make; they are passed over"));
    all.merge(own);
  }
  return all;
}

class Tuning {
 public:
  std::optional<TunedKernel> find(const Problem& problem, const DeviceDescription& device,
                                  std::size_t workspace) {
    look();
    if (user_.empty() && bundles_.empty()) return std::nullopt;
    TunedKernel wanted;
    wanted.problem = text_of(problem);
    wanted.device = tuning_device(device, workspace);
    const std::string key = wanted.key();
    for (const Table* table : {&user_, &bundles_})
      if (const auto found = table->find(key); found != table->end()) return found->second;
    return std::nullopt;
  }

  void forget() { looked_.reset(); }

 private:
  struct State {  // what identifies a version of the file
    std::int64_t size = -1, seconds = 0, nanoseconds = 0, number = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  void look() {
    constexpr std::chrono::seconds patience(1);
    const auto now = Clock::now();
    if (looked_ && now - *looked_ < patience) return;
    if (!directory_) {
      directory_ = folder();
      bundles_ = read_bundles();
    }
    looked_ = now;
    State state;
    struct stat status;
    if (!directory_->empty() && ::stat((*directory_ + "/" + file_name).c_str(), &status) == 0)
      state = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
               static_cast<std::int64_t>(status.st_ino)};
    if (state == state_) return;
    int error = 0;
    const std::string text = state.size < 0 ? "" : read_file(*directory_, error);
    if (error != 0) return;  // perhaps descriptors ran out: the next call tries again
    state_ = state;
    user_.clear();
    const int flaws = add_lines(text, user_);
    if (flaws > 0 && !warned_)
      log::warn(cat(*directory_, "/", file_name, " has ", flaws,
                    " lines that are damaged or of another make; they are passed over"));
    warned_ = warned_ || flaws > 0;
  }

  std::optional<std::string> directory_;
  std::optional<Clock::time_point> looked_;
  State state_;
  Table user_, bundles_;
  bool warned_ = false;
};

constinit PerProcess<Tuning> tuning("tuning");

}  // namespace

std::string tuning_device(const DeviceDescription& device, std::size_t workspace) {
  return cat(device.arch, ", ", device.multiprocessors, " multiprocessors, ",
             device.shared_memory_per_block, " bytes",
             workspace == 0 ? "" : cat(", ", workspace, " bytes of workspace"));
}

std::string tuned_text(const Proposal& proposal, kilnDeviceKind_t kind) {
  std::string all;
  for (const Step& step : proposal.steps) all += generate_source(step.kernel, kind);
  return cache::hash64_hex(bytes_of(all));
}

TunedKernel tuned_kernel(const Problem& problem, const DeviceDescription& device,
                         std::size_t workspace, const Option& winner, double microseconds) {
  return {text_of(problem), tuning_device(device, workspace),
          tuned_text(winner.choice.proposal, device.kind), winner.name, microseconds};
}

std::string tuning_line(const TunedKernel& kernel) {
  const std::string text =
      cat(kernel.key(), "\t", kernel.kernel_text, "\t", kernel.winner.engine, "\t",
          kernel.winner.tile, "\t", kernel.winner.parts, "\t", kernel.microseconds, "\t");
  return text + cache::hash64_hex(bytes_of(text));
}

std::optional<TunedKernel> parse_tuning_line(const std::string& line) {
  const std::vector<std::string_view> fields = split(line, '\t');
  constexpr std::size_t count = 8;
  if (fields.size() != count) return std::nullopt;
  const std::string checked = line.substr(0, line.size() - fields.back().size());
  if (fields.back() != cache::hash64_hex(bytes_of(checked))) return std::nullopt;
  const auto field = [&](std::size_t i) { return std::string(fields[i]); };
  TunedKernel kernel{field(0), field(1), field(2), {field(3), field(4), 0}, 0};
  if (!is_number(fields[5], kernel.winner.parts) || !is_number(fields[6], kernel.microseconds))
    return std::nullopt;
  return kernel;
}

std::string tuning_file() {
  const std::string directory = folder();
  return directory.empty() ? "" : directory + "/" + file_name;
}

std::optional<TunedKernel> find_winner(const Problem& problem, const DeviceDescription& device,
                                       std::size_t workspace) {
  if (cache_mode() == CacheMode::off) return std::nullopt;
  return tuning.lock()->find(problem, device, workspace);
}

void remember_winners(const std::vector<TunedKernel>& winners) {
  const std::string directory = folder();
  const auto refuse = [&](const std::string& why) {
    fail(KILN_STATUS_EXECUTION_FAILED, "winners cannot be kept in ",
         directory.empty() ? "the kernel cache" : directory + "/" + file_name, ": ", why);
  };
  if (directory.empty()) refuse("there is no folder for it");
  if (const int error = cache::make_private(directory)) refuse(cache::error_text(error));
  if (const auto standing = cache::examine(directory); standing.is != cache::Standing::sound)
    refuse("the folder " + standing.reason);
  constexpr std::chrono::milliseconds patience(10000);
  cache::FileLock lock(directory + "/" + file_name + ".lock");
  // After a timeout, two processes may write at once; the later file stays.
  static_cast<void>(lock.wait(patience));
  Table table;
  int ignored = 0;
  static_cast<void>(add_lines(read_file(directory, ignored), table));
  for (const TunedKernel& winner : winners) table.insert_or_assign(winner.key(), winner);
  std::string text = headline;
  for (const auto& [key, kernel] : table) text += tuning_line(kernel) + "\n";
  if (const int error = cache::publish_file(directory, file_name, bytes_of(text)))
    refuse(cache::error_text(error));
  tuning.lock()->forget();
}

Choice choose_tuned(const Problem& problem, const DeviceDescription& device, const Grant& grant,
                    std::vector<EngineRefusal>& refusals) {
  if (const auto tuned = find_winner(problem, device, grant.workspace)) {
    Choice choice = choose(problem, device, grant, refusals, &tuned->winner);
    if (!choice.tuned || tuned_text(choice.proposal, device.kind) == tuned->kernel_text)
      return choice;
  }
  return choose(problem, device, grant, refusals, nullptr);
}

}  // namespace kiln
