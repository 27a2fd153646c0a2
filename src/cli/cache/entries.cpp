#include "cli/cache/entries.hpp"

#include <filesystem>

#include "cache/entry_format.hpp"
#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "core/error.hpp"
#include "plan/kernel_cache.hpp"

namespace kiln::cli {
namespace {

std::string_view text_of(const cache::Section* section) {
  if (!section) return "";
  return {reinterpret_cast<const char*>(section->bytes.data()), section->bytes.size()};
}

}  // namespace

std::string StoredEntry::field(std::string_view name) const {
  for (const cache::Field& candidate : content)
    if (candidate.name == name) return candidate.value;
  return "?";
}

std::string StoredEntry::made_for() const { return std::string(text_of(entry.find("made for"))); }

void visit_entries(const cache::DiskStore& store, const Visit& visit) {
  for (const cache::Listing& listing : store.list()) {
    StoredEntry stored;
    stored.key = listing.content_hash + "-" + listing.producer_hash;
    stored.place = listing.path;
    stored.bytes = listing.bytes;
    cache::Lookup found = store.read(listing, &stored.content, &stored.producer);
    if (found.entry) {
      stored.entry = std::move(*found.entry);
      const std::string named = cache::Key(stored.content, stored.producer).text();
      if (named != stored.key) stored.flaw = cat("it is the entry of ", named);
    } else if (found.miss == cache::Miss::absent) {
      continue;  // evicted since it was listed
    } else {
      stored.flaw = found.detail;
    }
    visit(stored);
  }
}

void visit_entries(const cache::Bundle& bundle, const Visit& visit, std::string& flaw) {
  for (const cache::BundleRecord& record : bundle.records(flaw)) {
    StoredEntry stored;
    stored.key = record.content_hash + "-" + record.producer_hash;
    stored.place = bundle.path();
    stored.bytes = record.bytes;
    const std::vector<std::byte> bytes = bundle.entry(record);
    const cache::Decoded decoded = cache::decode(bytes);
    if (decoded.flaw) {
      stored.flaw = decoded.flaw;
    } else {
      stored.content = cache::copy_content(decoded.view);
      stored.producer = decoded.view.producer;
      stored.entry = cache::copy_sections(decoded.view);
      const std::string named = cache::Key(stored.content, stored.producer).text();
      if (named != stored.key) stored.flaw = cat("it is the entry of ", named);
    }
    visit(stored);
  }
}

void visit_all_entries(const Visit& visit) {
  std::string ignored;
  for (const auto& bundle : kernel_bundles()) visit_entries(*bundle, visit, ignored);
  visit_entries(kernel_cache(), visit);
}

std::vector<std::string> extract_entry(const StoredEntry& entry, const std::string& folder) {
  // An entry may hold any text for its architecture, which becomes part of a path.
  if (!is_architecture_name(entry.architecture()))
    fail(KILN_STATUS_EXECUTION_FAILED, entry.place, ": the architecture of ", entry.key, " is ",
         entry.architecture(), "; expected host, or sm_ with a number and perhaps a letter");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool host = entry.architecture() == "host";
  const std::string stem = cat(folder, "/", entry.key, ".", entry.architecture());
  std::vector<std::string> paths;
  const auto write = [&](const char* suffix, std::string_view content) {
    if (content.empty()) return;
    paths.push_back(stem + suffix);
    if (const std::string why = write_file(paths.back(), content); !why.empty())
      fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", paths.back(), ": ", why);
  };
  write(host ? ".so" : ".cubin", text_of(entry.entry.find("binary")));
  write(".ptx", text_of(entry.entry.find("ptx")));
  write(host ? ".cpp" : ".cu", entry.field("source"));
  write(".log", text_of(entry.entry.find("log")));
  return paths;
}

}  // namespace kiln::cli
