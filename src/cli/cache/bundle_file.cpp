#include "cli/cache/bundle_file.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/entry_format.hpp"
#include "cli/json_text.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "plan/kernel_store.hpp"
#include "plan/kernel_text.hpp"

namespace kiln::cli {

using nlohmann::ordered_json;

namespace {

std::vector<std::byte> packed(const PackedKernel& kernel, std::string& producer) {
  const KernelText text = kernel_text(kernel.kernel, kernel.kind, kernel.arch);
  cache::Lookup found = find_kernel(text.key).lookup;
  if (!found.entry) {
    make_image(kernel.kernel, kernel.kind, kernel.arch, Caching::use, [&] { return kernel.label; });
    found = find_kernel(text.key).lookup;
  }
  if (!found.entry)
    fail(KILN_STATUS_EXECUTION_FAILED, "kernel ", text.key.text(), " of ", kernel.label,
         " does not stay in the cache; expected room for all kernels (KILN_CACHE_MAX_SIZE)");
  producer = found.producer;
  // The provenance has the labels; the kernel's bytes depend on nothing but the kernel.
  std::erase_if(found.entry->sections,
                [](const cache::Section& section) { return section.name == "made for"; });
  return cache::encode(cache::Key(text.key.content(), found.producer), *found.entry);
}

}  // namespace

ordered_json make_provenance(const std::vector<std::string>& compilers, const ordered_json& kernels,
                             const std::vector<std::string>& problems,
                             const std::set<std::string>& winners) {
  ordered_json json;
  json["library"] = cat(KILN_VERSION_MAJOR, ".", KILN_VERSION_MINOR, ".", KILN_VERSION_PATCH);
  json["compilers"] = compilers;
  json["kernels"] = kernels;
  json["manifest"] = problems;
  if (!winners.empty()) json["tuning"] = winners;
  return json;
}

std::string text_of_provenance(const ordered_json& provenance) { return json_lines(provenance, 1); }

void write_bundle(const std::string& path, const std::vector<PackedKernel>& kernels,
                  const std::vector<std::string>& problems, const std::set<std::string>& winners) {
  std::map<std::string, const PackedKernel*> in_order;
  for (const PackedKernel& kernel : kernels)
    in_order.emplace(kernel_text(kernel.kernel, kernel.kind, kernel.arch).key.text(), &kernel);
  cache::BundleWriter writer(path);
  std::set<std::string> compilers;
  ordered_json labels = ordered_json::object();
  for (const auto& [key, kernel] : in_order) {
    std::string producer;
    writer.add(packed(*kernel, producer));
    compilers.insert(producer);
    labels[key] = kernel->label;
  }
  const std::string failure = writer.finish(text_of_provenance(
      make_provenance({compilers.begin(), compilers.end()}, labels, problems, winners)));
  if (!failure.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, "bundle ", path, " cannot be written: ", failure);
}

void check_is_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw UsageError(cat(path, " is not there; expected a bundle of kernels"));
}

std::unique_ptr<const cache::Bundle> open_bundle(const std::string& path) {
  check_is_there(path);
  std::string why;
  auto bundle = cache::Bundle::open(path, why);
  if (!bundle) fail(KILN_STATUS_EXECUTION_FAILED, path, " ", why);
  return bundle;
}

ordered_json provenance_of(const cache::Bundle& bundle) {
  std::string flaw;
  ordered_json json = parse_ordered_json(bundle.provenance(flaw));
  return json.is_object() ? json : ordered_json::object();
}

std::string label_of(const ordered_json& provenance, const std::string& key) {
  const auto kernels = provenance.find("kernels");
  if (kernels == provenance.end() || !kernels->is_object()) return "";
  const auto label = kernels->find(key);
  return label != kernels->end() && label->is_string() ? label->get<std::string>() : "";
}

}  // namespace kiln::cli
