// kiln info: this machine's GPUs, compilers and cache. Needs neither GPU nor driver nor compiler.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/device/device_file.hpp"
#include "cli/device/device_options.hpp"
#include "cli/fit/constants.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/version.hpp"
#include "compile/compiler.hpp"
#include "core/config.hpp"
#include "core/text.hpp"
#include "device/chip_name.hpp"
#include "device/device.hpp"
#include "engines/method.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

using nlohmann::ordered_json;

struct Variable {
  const char *name, *meaning;
};
constexpr Variable variables[] = {
    {"KILN_CACHE_DIR", "where kernels are kept; else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln"},
    {"KILN_CACHE", "on, readonly, strict (nothing is compiled) or off; else on"},
    {"KILN_CACHE_MAX_SIZE", "what that is kept below, as in 512M; else 4G"},
    {"KILN_BUNDLE_PATH", "bundles of kernels, separated by ':'; and kiln.bundle by the library"},
    {"KILN_RECORD", "the file that every plan made is written to, as a manifest for prewarm"},
    {"KILN_COMPILE_THREADS", "compilers at a time; else one a CPU"},
    {"KILN_COMPILE_WAIT", "seconds to wait for another process's compiler; else 30"},
    {"KILN_LOADED_KERNELS", "kernels kept loaded for plans to come; else 4096"},
    {"KILN_NVRTC", "the libnvrtc file to use; else it is searched for"},
    {"KILN_HOST_CXX", "the C++ compiler of the host device; else the one Kiln was built with"},
    {"KILN_HOST_OPTIMIZATION", "how far it optimizes kernels: 0, 1, 2, 3 or g; else 1"},
    {"KILN_LINEINFO", "1: kernels have line information, for profilers"},
    {"KILN_DUMP_DIR", "gets source, PTX and machine code of every kernel"},
    {"KILN_KERNEL_SOURCE_DIR", "kernel files there take the place of the library's own"},
    {"KILN_CUDNN_DEVICE", "host: programs for cuDNN run on the host device; else on the GPU"},
    {"KILN_CUDNN_POLICY", "background: a quick kernel runs while theirs compiles; else wait"},
    {"KILN_CUDNN_FORWARD", "the libcudnn file that gets what Kiln does not serve; else none"},
    {"KILN_CUDNN_STATUS", "8: statuses by the numbers of cuDNN 1 to 8; else 9"},
    {"KILN_CUDNN", "the libcudnn file of kiln bench; else it is searched for"},
    {"KILN_CUBLAS", "the libcublas file of kiln bench; else it is searched for"},
    {"KILN_LOG", "off, error, warn, info, debug or trace; else warn"},
    {"KILN_LOG_FILE", "where the log goes; else standard error"},
};

// ---- as JSON ------------------------------------------------------------------------------------

ordered_json devices_json() {
  ordered_json devices = ordered_json::array();
  std::string why;
  for (const DeviceDescription& device : list_cuda_devices(why)) {
    ordered_json each = ordered_json::parse(describe_as_json(device));
    each["device"] = cat("cuda:", device.ordinal);
    devices.push_back(std::move(each));
  }
  if (devices.empty()) devices.push_back({{"device", "cuda"}, {"none", why}});
  devices.push_back({{"device", "host"}, {"name", open_host_device()->description().name}});
  return devices;
}

ordered_json compiler_json(std::shared_ptr<const Compiler> (*find)(std::string&)) {
  std::string why;
  const auto compiler = find(why);
  if (!compiler) return {{"none", why}};
  return {{"description", compiler->description()}, {"build", compiler->identity()}};
}

ordered_json cache_json() {
  const cache::DiskStore& store = kernel_cache();
  ordered_json json{{"mode", name_of(cache_mode())}, {"bundles", ordered_json::array()}};
  for (const auto& bundle : kernel_bundles())
    json["bundles"].push_back(
        {{"file", bundle->path()}, {"kernels", bundle->entries()}, {"bytes", bundle->bytes()}});
  json["directory"] = store.directory();
  json["usable"] = store.usable();
  if (!store.usable()) {
    json["why"] = store.why_unusable();
    return json;
  }
  const auto listings = store.list();
  std::uint64_t bytes = 0;
  for (const cache::Listing& listing : listings) bytes += listing.bytes;
  json["entries"] = listings.size();
  json["bytes"] = bytes;
  json["limit_bytes"] = store.limit();
  json["counted"] = ordered_json::object();
  for (const auto& [name, value] : store.uses().counts) json["counted"][name] = value;
  return json;
}

ordered_json environment_json() {
  ordered_json json;
  for (const Variable& variable : variables) {
    const std::string value = environment(variable.name);
    json[variable.name] = value.empty() ? ordered_json() : ordered_json(value);
  }
  return json;
}

ordered_json everything() {
  ordered_json json{
      {"version", version()},
      {"commit", commit()},
      {"toolkit", toolkit()},
      {"devices", devices_json()},
      {"compilers",
       {{"nvrtc", compiler_json(find_nvrtc)}, {"host", compiler_json(find_host_compiler)}}},
      {"engines", ordered_json::array()},
      {"cache", cache_json()},
      {"environment", environment_json()}};
  for (const Method* method : methods()) json["engines"].push_back(method->name());
  return json;
}

// ---- the same as text ---------------------------------------------------------------------------

void line(const std::string& name, const std::string& value) {
  std::cout << "  " << padded(name, 20) << ' ' << value << '\n';
}

std::string device_text(const ordered_json& device) {
  if (device.contains("none")) return cat("none: ", device["none"].get<std::string>());
  if (device["device"] == "host")
    return "runs the same kernels on the CPU, for tests and debuggers";
  return cat(device["name"].get<std::string>(), ", ", device["architecture"].get<std::string>(),
             ", ", device["multiprocessors"].get<int>(), " multiprocessors, ",
             bytes_text(device["memory_bytes"]), ", ",
             bytes_text(device["shared_memory_per_block"]), " of shared memory a block");
}

void print_cache(const ordered_json& cache) {
  line("mode", cache["mode"]);
  for (const ordered_json& bundle : cache["bundles"])
    line("bundle",
         cat(bundle["file"].get<std::string>(), ", ", bundle["kernels"].get<std::size_t>(),
             " kernels, ", bytes_text(bundle["bytes"])));
  const std::string directory = cache["directory"];
  line("directory", directory.empty() ? "none" : directory);
  if (!cache["usable"]) {
    line("state",
         cat("not usable, kernels are kept in memory alone: ", cache["why"].get<std::string>()));
    return;
  }
  line("state", "usable");
  line("entries", cat(cache["entries"].get<std::size_t>(), ", ", bytes_text(cache["bytes"])));
  if (cache["limit_bytes"] != 0) line("limit", bytes_text(cache["limit_bytes"]));
  std::string counts;
  for (const auto& [name, value] : cache["counted"].items())
    counts += cat(counts.empty() ? "" : ", ", name, " ", value.get<std::uint64_t>());
  line("counted", counts.empty() ? "nothing yet" : counts);
}

void print(const ordered_json& facts) {
  std::cout << version_line() << "\ndevices\n";
  for (const ordered_json& device : facts["devices"]) line(device["device"], device_text(device));
  std::cout << "compilers\n";
  for (const auto& [name, compiler] : facts["compilers"].items())
    line(name, compiler.contains("none") ? cat("none: ", compiler["none"].get<std::string>())
                                         : compiler["description"].get<std::string>());
  std::cout << "engines\n";
  for (const std::string name : facts["engines"]) line(name, "");
  std::cout << "cache\n";
  print_cache(facts["cache"]);
  std::cout << "environment\n";
  for (const Variable& variable : variables) {
    const ordered_json& value = facts["environment"][variable.name];
    line(variable.name,
         cat(value.is_null() ? "(unset)" : value.get<std::string>(), "  ", variable.meaning));
  }
}

int run(bool as_json) {
  const ordered_json facts = everything();
  if (as_json) {
    std::cout << json_lines(facts, 2) << '\n';
  } else {
    print(facts);
  }
  std::cout.flush();
  return 0;
}

int describe_device(const std::string& name) {
  const bool present = name.empty() || name.starts_with("cuda");
  std::cout << describe_as_json(present ? device_of(name, "--describe-device")->description()
                                        : architecture_of(name));
  return 0;
}

// The names of one kind, one a line, for completion.
int list_names(const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "architectures") {
    names = known_chip_names();
    names.emplace_back("host");
  } else if (kind == "engines") {
    for (const Method* method : methods()) names.emplace_back(method->name());
  } else {
    names = fit::family_names();
  }
  for (const std::string& name : names) std::cout << name << '\n';
  return 0;
}

}  // namespace

void add_info_command(Command app, Run& run_command) {
  const Command command =
      app.add_command("info", "Devices, compilers, cache and environment of this machine");
  auto device = std::make_shared<std::string>();
  const CommandOption describe =
      command
          .add_option("--describe-device", *device,
                      "Print a device's description instead, for `kiln prewarm --device`: cuda, "
                      "cuda:N (default: the first GPU), or an architecture or chip that Kiln knows")
          .expected(0, 1)
          .type_name("DEVICE");
  auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json, "One JSON object");
  auto kind = std::make_shared<std::string>();
  command
      .add_option("--list", *kind,
                  "Print the names that --arch, --engine or --family take, one a line")
      .one_of({"architectures", "engines", "families"});
  command.when_parsed([=, &run_command] {
    run_command = [=, described = describe.given()] {
      if (!kind->empty()) return list_names(*kind);
      return described ? describe_device(*device) : run(*as_json);
    };
  });
}

}  // namespace kiln::cli
