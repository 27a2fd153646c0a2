#include "cli/device/device_file.hpp"

#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

namespace kiln::cli {
namespace {

// Every number that an engine may look at.
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

}  // namespace

std::string describe_as_json(const DeviceDescription& device) {
  nlohmann::ordered_json json;
  json["name"] = device.name;
  json["architecture"] = device.arch;
  for (const Number& number : numbers) json[number.name] = number.get(device);
  return json.dump(2) + "\n";
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
