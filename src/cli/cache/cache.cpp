// kiln cache: the content of the kernel cache.
#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/cache/cache_commands.hpp"
#include "cli/cache/entries.hpp"
#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/operation/read_line.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"
#include "plan/kernel_cache.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string what, arch, folder = ".", max_size;
  int days = -1;
  bool remove = false, json = false;
};

std::string date_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

const cache::DiskStore& usable_cache() {
  const cache::DiskStore& store = kernel_cache();
  if (!store.usable()) {
    fail(KILN_STATUS_EXECUTION_FAILED, "the kernel cache cannot be used: ", store.why_unusable());
  }
  return store;
}

// Prints the object if --json is given, else the text. Returns the exit status.
int answer(const Options& options, const ordered_json& json, const std::string& text) {
  std::cout << (options.json ? json_line(json) : text);
  return 0;
}

int print_path(const Options& options) {
  const std::string& directory = kernel_cache().directory();
  if (directory.empty()) {
    fail(KILN_STATUS_EXECUTION_FAILED,
         "there is no place for a kernel cache: set KILN_CACHE_DIR, XDG_CACHE_HOME or HOME");
  }
  return answer(options, {{"directory", directory}}, directory + "\n");
}

int print_entries(const Options& options) {
  const cache::DiskStore& store = usable_cache();
  std::map<std::string, std::int64_t> used;
  for (const cache::Listing& listing : store.list()) used[listing.path] = listing.used;
  visit_entries(store, [&](const StoredEntry& entry) {
    const bool sound = entry.flaw.empty();
    ordered_json json{{"key", entry.key}, {"used", used[entry.place]}, {"bytes", entry.bytes}};
    if (sound) json["architecture"] = entry.architecture();
    if (sound) json["problem"] = entry.made_for();
    if (!sound) json["flaw"] = entry.flaw;
    answer(options, json,
           cat(entry.key, "  ", date_text(used[entry.place]), "  ",
               padded(sound ? printable(entry.architecture()) : "(corrupt)", 8), "  ",
               padded(bytes_text(entry.bytes), 10), "  ", sound ? printable(entry.made_for()) : "",
               "\n"));
  });
  return 0;
}

int print_statistics(const Options& options) {
  const cache::DiskStore& store = usable_cache();
  const auto listings = store.list();
  std::uint64_t bytes = 0;
  std::int64_t oldest = 0, newest = 0;
  for (const cache::Listing& listing : listings) {
    bytes += listing.bytes;
    oldest = oldest == 0 ? listing.used : std::min(oldest, listing.used);
    newest = std::max(newest, listing.used);
  }
  ordered_json json{{"directory", store.directory()},
                    {"entries", listings.size()},
                    {"bytes", bytes},
                    {"limit_bytes", store.limit()}};
  std::string text =
      cat("directory  ", store.directory(), "\nentries    ", listings.size(), "\nsize       ",
          bytes_text(bytes), "\nlimit      ",
          store.limit() == 0 ? "none, for nothing is written" : bytes_text(store.limit()), "\n");
  if (!listings.empty()) {
    json["oldest_use"] = oldest;
    json["newest_use"] = newest;
    text += cat("last used  ", date_text(oldest), " to ", date_text(newest), "\n");
  }
  const cache::Uses uses = store.uses();
  json["counted"] = ordered_json::object();
  if (!uses.counts.empty()) {
    json["counted_since"] = uses.since;
    text += cat("counted    since ", date_text(uses.since), "\n");
  }
  for (const auto& [name, value] : uses.counts) {
    json["counted"][name] = value;
    text += cat("  ", padded(name, 22), " ", value, "\n");
  }
  return answer(options, json, text);
}

int verify(const Options& options) {
  const cache::DiskStore& store = usable_cache();
  int sound = 0;
  ordered_json damaged = ordered_json::array();
  visit_entries(store, [&](const StoredEntry& entry) {
    if (entry.flaw.empty()) {
      ++sound;
      return;
    }
    damaged.push_back({{"file", entry.place}, {"flaw", entry.flaw}});
    if (!options.json) std::cout << entry.flaw << '\n';
    std::error_code ignored;
    if (options.remove) std::filesystem::remove(entry.place, ignored);
  });
  const bool removed = options.remove && !damaged.empty();
  answer(options, {{"sound", sound}, {"damaged", damaged}, {"removed", removed}},
         cat(sound, " entries are sound, ", damaged.size(), " are not",
             removed ? " and were removed" : "", "\n"));
  return damaged.empty() ? 0 : 1;
}

int prune(const Options& options) {
  usable_cache();
  std::uint64_t target = std::numeric_limits<std::uint64_t>::max();
  if (!options.max_size.empty() && !parse_bytes(options.max_size, target))
    throw UsageError(cat("--max-size is ", options.max_size, "; expected bytes, as in 512M or 4G"));
  if (options.max_size.empty() && options.days < 0) {
    target = default_cache_bytes;
    if (kernel_cache().limit() != 0) target = kernel_cache().limit();
  }
  constexpr std::int64_t day = 24 * 60 * 60;
  const std::int64_t since = options.days < 0 ? 0 : std::time(nullptr) - options.days * day;
  const cache::Pruned pruned = kernel_cache().prune(target, since);
  return answer(options,
                {{"removed", pruned.entries},
                 {"removed_bytes", pruned.bytes},
                 {"left", pruned.entries_left},
                 {"left_bytes", pruned.bytes_left}},
                cat("removed ", pruned.entries, " entries, ", bytes_text(pruned.bytes), "; left ",
                    pruned.entries_left, ", ", bytes_text(pruned.bytes_left), "\n"));
}

int why(const Options& options) {
  return explain_problem(options.what, options.arch, options.json);
}

bool is_key(const std::string& text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

int extract(const Options& options) {
  const bool by_key = is_key(options.what);
  const std::string wanted =
      by_key ? options.what : kernel_of_problem(options.what, options.arch).text.key.content_hash();
  ordered_json files = ordered_json::array();
  visit_all_entries([&](const StoredEntry& entry) {
    if (!entry.key.starts_with(wanted)) return;
    if (!entry.flaw.empty()) {
      std::cerr << "kiln: " << entry.place << ": " << entry.flaw << '\n';
      return;
    }
    for (const std::string& path : extract_entry(entry, options.folder)) {
      files.push_back(path);
      if (!options.json) std::cout << path << '\n';
    }
  });
  if (files.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, "kernel ", wanted, by_key ? "..." : "",
         " is in no bundle and not in the user's cache",
         by_key ? "" : "; `kiln cache why` tells more");
  return answer(options, {{"files", files}}, "");
}

int clear(const Options& options) {
  usable_cache();
  const auto removed = kernel_cache().clear();
  return answer(options, {{"removed", removed}}, cat("removed ", removed, " entries\n"));
}

}  // namespace

AskedKernel kernel_of_problem(const std::string& problem, const std::string& arch) {
  const ReadLine line = read_one(problem, {});
  const DeviceDescription device = chip_of(line.chips, arch);
  std::vector<EngineRefusal> refusals;
  const Proposal proposal = choose_tuned(line.problem, device, line.grant, refusals).proposal;
  return {plan_line(line.problem, device, line.grant), device.arch, proposal.first().kernel.engine,
          kernel_text(proposal.first().kernel, device.kind, device.arch)};
}

void add_cache_command(Command app, Run& run_command) {
  const Command command = app.add_command("cache", "The cache of compiled kernels on disk");
  command.at_most_one_command();
  command.when_parsed([command, &run_command] {
    if (command.names_command()) return;
    run_command = []() -> int {
      throw UsageError(
          "no cache command; expected path, ls, stat, verify, prune, why, extract or clear");
    };
  });
  auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* what, int (*body)(const Options&)) {
    const Command sub = command.add_command(name, what);
    sub.add_flag("--json", options->json, "One JSON object per line");
    sub.when_parsed([=, &run_command] { run_command = [=] { return body(*options); }; });
    return sub;
  };
  const auto add_arch = [&](Command sub) {
    sub.add_option("--arch", options->arch,
                   "sm_XX, a chip or host (default: the line's, the first GPU's, else sm_90a)");
  };
  add("path", "Its directory", print_path);
  add("ls", "Its entries: key, last use, architecture, size, the problem it was first made for",
      print_entries);
  add("stat", "How many entries, how large, how old, and what processes counted", print_statistics);
  add("verify", "Read every entry; exit status 1 if any is damaged", verify)
      .add_flag("--remove", options->remove, "Remove those that are");
  const Command less = add("prune", "Remove the least recently used entries", prune);
  less.add_option("--max-size", options->max_size,
                  "Until at most this much is left, as in 512M (default: KILN_CACHE_MAX_SIZE)");
  less.add_option("--days", options->days, "Entries that were not used for this many days")
      .range(0, 100000);
  const Command ask = add("why", "Where a problem's kernel is, or what of its key differs", why);
  ask.add_option("PROBLEM", options->what, "One word, as logs print it: 'conv --dt f16 mb1ic3...'")
      .required();
  add_arch(ask);
  const Command take = add("extract", "A kernel's machine code, PTX and source as files", extract);
  take.add_option("WHAT", options->what, "The beginning of a key, or a problem as of why")
      .required();
  take.add_option("-o", options->folder, "Write into this folder").type_name("DIR").show_default();
  add_arch(take);
  add("clear", "Remove every entry", clear);
}

}  // namespace kiln::cli
