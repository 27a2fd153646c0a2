#include "cli/device/device_file.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "cli/json_text.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

// A number of a device's description, by its name in files, with the least and the most that a file
// may give.
struct Number {
  const char* name;
  std::int64_t least, most;
  std::int64_t (*get)(const DeviceDescription&);
  void (*set)(DeviceDescription&, std::int64_t);
};

#define KILN_NUMBER(field, least, most)                                                              \
  {                                                                                                  \
#field, least, most,                                                                               \
        [](const DeviceDescription& device) { return static_cast<std::int64_t>(device.field); }, \
        [](DeviceDescription& device, std::int64_t value) {                                      \
          device.field = static_cast<decltype(device.field)>(value);                             \
        } \
  }

constexpr Number numbers[] = {
    KILN_NUMBER(compute_capability, 50, 1000),
    KILN_NUMBER(multiprocessors, 1, 100000),
    KILN_NUMBER(largest_cluster, 1, 1024),
    KILN_NUMBER(shared_memory_per_block, 16 * 1024, 1 << 30),
    KILN_NUMBER(shared_memory_per_multiprocessor, 16 * 1024, 1 << 30),
    KILN_NUMBER(registers_per_multiprocessor, 1024, 1 << 30),
    KILN_NUMBER(l2_bytes, 0, std::int64_t{1} << 50),
    KILN_NUMBER(memory_bytes, 0, std::int64_t{1} << 60),
};
#undef KILN_NUMBER

// The field of DeviceDescription::clusters_at_once, {"2": [66, 132, 198, 264], ...}: for each
// cluster size, how many run at once with 1 to 4 blocks on a multiprocessor. Older files lack it.
constexpr const char* clusters_field = "clusters_at_once";

nlohmann::ordered_json json_of(const ClusterCounts& counts) {
  nlohmann::ordered_json json;
  for (std::size_t i = 0; i < counts.size(); ++i)
    json[std::to_string(counted_cluster_sizes[i])] = counts[i];
  return json;
}

// Reads that field. No value unless it is an object with a row of counts for every cluster size.
std::optional<ClusterCounts> clusters_of(const nlohmann::json& json) {
  constexpr int most = 100000;
  if (!json.is_object() || json.size() != counted_cluster_sizes.size()) return std::nullopt;
  ClusterCounts counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto row = json.find(std::to_string(counted_cluster_sizes[i]));
    if (row == json.end() || !row->is_array() || row->size() != counts[i].size())
      return std::nullopt;
    for (std::size_t blocks = 0; blocks < counts[i].size(); ++blocks) {
      const nlohmann::json& count = (*row)[blocks];
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > most) return std::nullopt;
      counts[i][blocks] = count.get<int>();
    }
  }
  return counts;
}

}  // namespace

std::string describe_as_json(const DeviceDescription& device) {
  nlohmann::ordered_json json;
  json["name"] = device.name;
  json["architecture"] = device.arch;
  for (const Number& number : numbers) json[number.name] = number.get(device);
  if (device.clusters_at_once != ClusterCounts{})
    json[clusters_field] = json_of(device.clusters_at_once);
  return json_lines(json, 2) + "\n";
}

DeviceDescription read_device_file(const std::string& path) {
  const auto json = parse_json(read_file(path));
  const auto wrong = [&](const char* field, const std::string& expected) {
    fail(KILN_STATUS_BAD_PARAM, path, ": ", field, " is ",
         json.contains(field) ? text_of_json(json[field]) : "missing", "; expected ", expected);
  };
  if (!json.is_object())
    fail(KILN_STATUS_BAD_PARAM, path,
         " is no JSON object; expected what `kiln info --describe-device` writes");
  DeviceDescription device;
  for (const Number& number : numbers) {
    const auto found = json.find(number.name);
    const bool fits = found != json.end() && found->is_number_integer() &&
                      found->get<double>() >= static_cast<double>(number.least) &&
                      found->get<double>() <= static_cast<double>(number.most);
    if (!fits) wrong(number.name, cat("a whole number, ", number.least, " to ", number.most));
    number.set(device, found->get<std::int64_t>());
  }
  device.clusters_at_once = known_clusters(device.compute_capability, device.multiprocessors);
  if (const auto found = json.find(clusters_field); found != json.end()) {
    const std::optional<ClusterCounts> counts = clusters_of(*found);
    if (!counts)
      wrong(clusters_field,
            cat("an object with the sizes ", join(counted_cluster_sizes, ", "),
                ", and for each the clusters that run at once, with 1 to ",
                std::tuple_size_v<ClusterCounts::value_type>, " blocks on a multiprocessor"));
    device.clusters_at_once = *counts;
  }
  const auto name = json.find("name"), arch = json.find("architecture");
  if (name == json.end() || !name->is_string()) wrong("name", "a text");
  const std::string plain = cat("sm_", device.compute_capability);
  const auto is_of_chip = [&](const std::string& text) {
    return is_architecture_name(text) &&
           (text == plain || text.substr(0, text.size() - 1) == plain);
  };
  if (arch == json.end() || !arch->is_string() || !is_of_chip(arch->get<std::string>()))
    wrong("architecture", cat("\"", plain, "\", perhaps with a letter after it"));
  device.name = name->get<std::string>();
  device.arch = arch->get<std::string>();
  return device;
}

}  // namespace kiln::cli
