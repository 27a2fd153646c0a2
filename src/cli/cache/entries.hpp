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
  std::string flaw;  // how the entry is damaged; if it is, only key, place and bytes are to be read
  std::uint64_t bytes = 0;

  std::string field(std::string_view name) const;  // "?" if there is none
  std::string architecture() const { return field("architecture"); }
  std::string made_for()
      const;  // the line of the first problem that it was made for; "" if unknown
};

using Visit = std::function<void(const StoredEntry&)>;
// Passes each entry of the user's cache or of a bundle to `visit`, damaged ones too. `flaw`: how
// the bundle's index is damaged, if it is.
void visit_entries(const cache::DiskStore& store, const Visit& visit);
void visit_entries(const cache::Bundle& bundle, const Visit& visit, std::string& flaw);
// The same for all of the process's bundles, then the user's cache.
void visit_all_entries(const Visit& visit);

// Writes the parts of an entry into `folder` as files for other tools: KEY.ARCHITECTURE.cubin,
// .ptx, .cu (of the host device .so and .cpp) and .log. Returns their paths. Throws
// EXECUTION_FAILED if one cannot be written, or if the entry's architecture, which becomes part of
// the paths, is no architecture's name.
std::vector<std::string> extract_entry(const StoredEntry& entry, const std::string& folder);

}  // namespace kiln::cli
