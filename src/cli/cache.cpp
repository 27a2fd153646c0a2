// kiln cache: what lies in the kernel cache.
#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "core/error.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

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

int print_path() {
  const std::string& directory = kernel_cache().directory();
  if (directory.empty()) {
    fail(KILN_STATUS_EXECUTION_FAILED,
         "there is no place for a kernel cache: set KILN_CACHE_DIR, XDG_CACHE_HOME or HOME");
  }
  std::cout << directory << '\n';
  return 0;
}

int print_entries() {
  const cache::DiskStore& store = usable_cache();
  for (const cache::Listing& listing : store.list()) {
    std::vector<cache::Field> content;
    std::string producer;
    const cache::Lookup found = store.read(listing, &content, &producer);
    std::string architecture = cat("(", cache::name_of(found.miss), ")");
    if (found.entry) {
      const auto field = std::find_if(content.begin(), content.end(), [](const auto& candidate) {
        return candidate.name == "architecture";
      });
      architecture = field == content.end() ? "?" : field->value;
    }
    std::cout << listing.content_hash << '-' << listing.producer_hash << "  "
              << date_text(listing.modified) << "  " << padded(architecture, 8) << "  "
              << bytes_text(listing.bytes) << '\n';
  }
  return 0;
}

int print_statistics() {
  const cache::DiskStore& store = usable_cache();
  const auto listings = store.list();
  std::uint64_t bytes = 0;
  std::int64_t oldest = 0, newest = 0;
  for (const cache::Listing& listing : listings) {
    bytes += listing.bytes;
    oldest = oldest == 0 ? listing.modified : std::min(oldest, listing.modified);
    newest = std::max(newest, listing.modified);
  }
  std::cout << "directory  " << store.directory() << "\nentries    " << listings.size()
            << "\nsize       " << bytes_text(bytes) << '\n';
  if (!listings.empty()) {
    std::cout << "oldest     " << date_text(oldest) << "\nnewest     " << date_text(newest) << '\n';
  }
  return 0;
}

int clear() {
  usable_cache();
  std::cout << "removed " << kernel_cache().clear() << " entries\n";
  return 0;
}

}  // namespace

void add_cache_command(CLI::App& app, Run& run_command) {
  CLI::App& command = *app.add_subcommand("cache", "The cache of compiled kernels on disk");
  command.require_subcommand(0, 1);
  command.callback([&command, &run_command] {
    if (!command.get_subcommands().empty()) return;
    run_command = []() -> int {
      throw UsageError("no cache command; expected path, ls, stat or clear");
    };
  });
  const auto add = [&](const char* name, const char* what, int (*body)()) {
    command.add_subcommand(name, what)->callback([body, &run_command] { run_command = body; });
  };
  add("path", "Its directory", print_path);
  add("ls", "Its entries: key, date, architecture, size", print_entries);
  add("stat", "How many entries, how large, how old", print_statistics);
  add("clear", "Remove every entry", clear);
}

}  // namespace kiln::cli
