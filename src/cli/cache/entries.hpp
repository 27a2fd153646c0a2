// Entries of the user's cache and of bundles, in one form.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/bundle/bundle.hpp"
#include "cache/store/disk_store.hpp"

namespace kiln::cli {

struct StoredEntry {
  std::string key, place;  // "0123...-89ab...", the file
  std::vector<cache::Field> content;
  std::string producer;
  cache::Entry entry;
  std::string flaw;  // why it is not sound; only key and place are then set
  std::uint64_t bytes = 0;

  std::string field(std::string_view name) const;  // "?" if there is none
  std::string architecture() const { return field("architecture"); }
};

using Visit = std::function<void(const StoredEntry&)>;
void visit_entries(const cache::DiskStore& store, const Visit& visit);
// `flaw` tells of a damaged index.
void visit_entries(const cache::Bundle& bundle, const Visit& visit, std::string& flaw);
// The user's cache and the process's bundles.
void visit_all_entries(const Visit& visit);

// Writes what is kept of a kernel for other tools: KEY.ARCHITECTURE.cubin, .ptx, .cu (of the host
// device .so and .cpp), .log. The paths. Throws EXECUTION_FAILED, also for an entry that does not
// name an architecture: its word for it would become part of the paths.
std::vector<std::string> extract_entry(const StoredEntry& entry, const std::string& folder);

}  // namespace kiln::cli
