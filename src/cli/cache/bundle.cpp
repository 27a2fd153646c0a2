// kiln bundle: files of many kernels, made by `kiln prewarm --bundle`.
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/entry_format.hpp"
#include "cli/cache/bundle_file.hpp"
#include "cli/cache/entries.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string file, output;
  std::vector<std::string> files, keys;
  bool json = false;
};

// Prints the object if --json is given, else the text.
void answer(const Options& options, const ordered_json& json, const std::string& text) {
  std::cout << (options.json ? json_line(json) : text);
}

std::vector<std::string> texts_in(const ordered_json& json, const char* field) {
  std::vector<std::string> texts;
  const auto found = json.find(field);
  if (found == json.end() || !found->is_array()) return texts;
  for (const auto& text : *found)
    if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

std::string library_of(const ordered_json& provenance) {
  const auto library = provenance.find("library");
  return library != provenance.end() && library->is_string() ? library->get<std::string>() : "?";
}

int list(const Options& options) {
  const auto bundle = open_bundle(options.file);
  const auto provenance = provenance_of(*bundle);
  const std::string library = library_of(provenance);
  const std::vector<std::string> compilers = texts_in(provenance, "compilers"),
                                 manifest = texts_in(provenance, "manifest");
  ordered_json kernels = ordered_json::array();
  std::string flaw, text = cat("library    ", printable(library), "\n");
  for (const std::string& compiler : compilers)
    text += cat("compiler   ", printable(compiler), "\n");
  text += cat("manifest   ", manifest.size(), " problems\nkernels    ", bundle->entries(),
              "\nsize       ", bytes_text(bundle->bytes()), "\n");
  for (const cache::BundleRecord& record : bundle->records(flaw)) {
    const std::string key = record.content_hash + "-" + record.producer_hash,
                      label = label_of(provenance, key);
    kernels.push_back({{"key", key}, {"bytes", record.bytes}, {"problem", label}});
    text += cat(key, "  ", padded(bytes_text(record.bytes), 10), "  ", printable(label), "\n");
  }
  answer(options,
         {{"file", options.file},
          {"library", library},
          {"compilers", compilers},
          {"manifest", manifest},
          {"bytes", bundle->bytes()},
          {"kernels", kernels}},
         text);
  if (!flaw.empty()) fail(KILN_STATUS_EXECUTION_FAILED, options.file, ": ", flaw);
  return 0;
}

// Checks each bundle: its index, its provenance, and each entry against its key and for machine
// code. Exit status 1 if one is damaged or has no kernel.
int verify(const Options& options) {
  bool sound = true;
  for (const std::string& file : options.files) check_is_there(file);
  for (const std::string& file : options.files) {
    std::vector<std::string> flaws;
    std::uint64_t entries = 0;
    std::string why;
    const auto bundle = cache::Bundle::open(file, why);
    if (bundle) {
      std::string provenance_flaw, index_flaw;
      bundle->provenance(provenance_flaw);
      visit_entries(
          *bundle,
          [&](const StoredEntry& entry) {
            ++entries;
            if (!entry.flaw.empty()) flaws.push_back(cat(entry.key, ": ", entry.flaw));
            if (entry.flaw.empty() && !entry.entry.find("binary"))
              flaws.push_back(entry.key + ": no machine code");
          },
          index_flaw);
      for (const std::string& flaw : {provenance_flaw, index_flaw})
        if (!flaw.empty()) flaws.push_back(flaw);
    } else {
      flaws.push_back(why);
    }
    if (flaws.empty() && entries == 0) flaws.emplace_back("0 kernels; expected at least one");
    std::string text;
    for (const std::string& flaw : flaws) text += cat(file, ": ", flaw, "\n");
    if (flaws.empty()) text = cat(file, ": ", entries, " kernels, all sound\n");
    answer(options, {{"file", file}, {"kernels", entries}, {"flaws", flaws}}, text);
    sound = sound && flaws.empty();
  }
  return sound ? 0 : 1;
}

struct Content {
  std::map<std::string, std::vector<std::byte>> binaries;  // by key
  ordered_json provenance;
};

Content content_of(const std::string& file) {
  const auto bundle = open_bundle(file);
  Content content;
  content.provenance = provenance_of(*bundle);
  std::string flaw;
  visit_entries(
      *bundle,
      [&](const StoredEntry& entry) {
        if (!entry.flaw.empty()) flaw = cat(entry.key, ": ", entry.flaw);
        const cache::Section* const binary = entry.entry.find("binary");
        content.binaries[entry.key] = binary ? binary->bytes : std::vector<std::byte>();
      },
      flaw);
  if (!flaw.empty()) fail(KILN_STATUS_EXECUTION_FAILED, file, ": ", flaw);
  return content;
}

// Prints in what two bundles differ: library, compilers, kernels that only one has, and kernels
// whose machine code differs under one key. Exit status 1 if they differ.
int diff(const Options& options) {
  const Content a = content_of(options.files.at(0)), b = content_of(options.files.at(1));
  ordered_json differences = ordered_json::array();
  std::string text;
  const auto tell = [&](char mark, const Content& of, const std::string& key) {
    const std::string label = label_of(of.provenance, key);
    differences.push_back({{"kernel", key}, {"problem", label}, {"mark", std::string(1, mark)}});
    text += cat(mark, ' ', key, "  ", printable(label), "\n");
  };
  const auto tell_fields = [&](const char* name, const std::string& old, const std::string& fresh) {
    if (old == fresh) return;
    differences.push_back({{"field", name}, {"before", old}, {"after", fresh}});
    text += cat(name, "  ", printable(old), "  ->  ", printable(fresh), "\n");
  };
  tell_fields("library", library_of(a.provenance), library_of(b.provenance));
  tell_fields("compilers", join(texts_in(a.provenance, "compilers"), ", "),
              join(texts_in(b.provenance, "compilers"), ", "));
  for (const auto& [key, binary] : a.binaries) {
    const auto other = b.binaries.find(key);
    if (other == b.binaries.end())
      tell('-', a, key);
    else if (other->second != binary)
      tell('!', a, key);
  }
  for (const auto& [key, binary] : b.binaries)
    if (!a.binaries.contains(key)) tell('+', b, key);
  if (differences.empty()) text = cat("the same ", a.binaries.size(), " kernels\n");
  answer(options, {{"kernels", a.binaries.size()}, {"differences", differences}}, text);
  return differences.empty() ? 0 : 1;
}

int extract(const Options& options) {
  const auto bundle = open_bundle(options.file);
  int count = 0;
  std::string flaw;
  ordered_json files = ordered_json::array();
  visit_entries(
      *bundle,
      [&](const StoredEntry& entry) {
        bool wanted = options.keys.empty();
        for (const std::string& key : options.keys) wanted = wanted || entry.key.starts_with(key);
        if (!wanted) return;
        if (!entry.flaw.empty())
          fail(KILN_STATUS_EXECUTION_FAILED, options.file, ": ", entry.key, ": ", entry.flaw);
        ++count;
        for (const std::string& path : extract_entry(entry, options.output)) {
          files.push_back(path);
          if (!options.json) std::cout << path << '\n';
        }
      },
      flaw);
  if (!flaw.empty()) fail(KILN_STATUS_EXECUTION_FAILED, options.file, ": ", flaw);
  if (count == 0) fail(KILN_STATUS_EXECUTION_FAILED, options.file, " has no such kernel");
  answer(options, {{"files", files}}, "");
  return 0;
}

// Writes the kernels of several bundles into a new one. Of a key that several have, the first
// bundle's kernel is taken.
int merge(const Options& options) {
  if (options.files.size() < 2)
    throw UsageError(cat(options.files.front(),
                         " is the only bundle given; expected two or more, "
                         "and the new one's name behind -o"));
  std::error_code ignored;
  if (std::filesystem::exists(options.output, ignored))
    throw UsageError(
        cat("-o is ", options.output, ", which exists; expected the name of a new file"));
  std::map<std::string, std::pair<const cache::Bundle*, cache::BundleRecord>> in_order;
  std::vector<std::unique_ptr<const cache::Bundle>> bundles;
  std::set<std::string> compilers, problems, winners;
  ordered_json labels = ordered_json::object();
  for (const std::string& file : options.files) {
    bundles.push_back(open_bundle(file));
    const auto provenance = provenance_of(*bundles.back());
    for (const std::string& text : texts_in(provenance, "compilers")) compilers.insert(text);
    for (const std::string& text : texts_in(provenance, "manifest")) problems.insert(text);
    for (const std::string& text : texts_in(provenance, "tuning")) winners.insert(text);
    std::string flaw;
    for (const cache::BundleRecord& record : bundles.back()->records(flaw)) {
      const std::string key = record.content_hash + "-" + record.producer_hash;
      if (in_order.emplace(key, std::pair(bundles.back().get(), record)).second)
        labels[key] = label_of(provenance, key);
    }
    if (!flaw.empty()) fail(KILN_STATUS_EXECUTION_FAILED, file, ": ", flaw);
  }
  if (in_order.empty())
    fail(KILN_STATUS_EXECUTION_FAILED,
         "no bundle is written, because the given ones have no kernels");
  cache::BundleWriter writer(options.output);
  for (const auto& [key, source] : in_order) {
    const std::vector<std::byte> entry = source.first->entry(source.second);
    if (const cache::Decoded decoded = cache::decode(entry); decoded.flaw)
      fail(KILN_STATUS_EXECUTION_FAILED, source.first->path(), ": ", key, ": ", decoded.flaw);
    writer.add(entry);
  }
  const auto provenance = make_provenance({compilers.begin(), compilers.end()}, labels,
                                          {problems.begin(), problems.end()}, winners);
  const std::string failure = writer.finish(text_of_provenance(provenance));
  if (!failure.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, "bundle ", options.output, " cannot be written: ", failure);
  answer(options, {{"file", options.output}, {"kernels", in_order.size()}},
         cat(options.output, ": ", in_order.size(), " kernels\n"));
  return 0;
}

}  // namespace

void add_bundle_command(Command app, Run& run_command) {
  const Command command =
      app.add_command("bundle", "Files of many kernels, as `kiln prewarm --bundle` makes them");
  command.at_most_one_command();
  command.when_parsed([command, &run_command] {
    if (command.names_command()) return;
    run_command = []() -> int {
      throw UsageError("no bundle command; expected ls, verify, diff, extract or merge");
    };
  });
  auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* what, int (*body)(const Options&)) {
    const Command sub = command.add_command(name, what);
    sub.add_flag("--json", options->json, "One JSON object per line");
    sub.when_parsed([=, &run_command] { run_command = [=] { return body(*options); }; });
    return sub;
  };
  add("ls", "Provenance and kernels: key, size, architecture, problem", list)
      .add_option("FILE", options->file)
      .required();
  add("verify", "Read every byte; exit status 1 if any is wrong, or a bundle is empty", verify)
      .add_option("FILE", options->files)
      .required();
  add("diff", "Kernels that one of two has (- +), or that differ (!); exit status 1 if any", diff)
      .add_option("FILE", options->files)
      .expected(2)
      .required();
  const Command take =
      add("extract", "Machine code, PTX and source as files of their own", extract);
  take.add_option("FILE", options->file).required();
  take.add_option("KEY", options->keys, "Beginnings of keys; none: every kernel");
  take.add_option("-o", options->output, "Write into this folder").type_name("DIR").required();
  const Command join_up = add("merge", "One bundle of several", merge);
  join_up.add_option("FILE", options->files).required();
  join_up.add_option("-o", options->output, "Write this file, which must not exist")
      .type_name("OUT")
      .required();
}

}  // namespace kiln::cli
