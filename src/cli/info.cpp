// kiln info: what this machine has. Works with neither GPU nor driver nor compiler.
#include <cstdlib>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/device_file.hpp"
#include "cli/device_options.hpp"
#include "cli/format.hpp"
#include "compile/compiler.hpp"
#include "core/text.hpp"
#include "device/device.hpp"
#include "engines/engine.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

void line(const std::string& name, const std::string& value) {
  std::cout << "  " << padded(name, 20) << ' ' << value << '\n';
}

void print_devices() {
  std::cout << "devices\n";
  std::string why;
  const auto devices = list_cuda_devices(why);
  if (devices.empty()) line("cuda", "none: " + why);
  for (const DeviceDescription& device : devices) {
    line(cat("cuda:", device.ordinal),
         cat(device.name, ", ", device.arch, ", ", device.multiprocessors, " multiprocessors, ",
             bytes_text(device.memory_bytes), ", ", bytes_text(device.shared_memory_per_block),
             " of shared memory a block"));
  }
  line("host", "runs the same kernels on the CPU, for tests and debuggers");
}

void print_compiler(const std::string& name,
                    std::shared_ptr<const Compiler> (*find)(std::string&)) {
  std::string why;
  const auto compiler = find(why);
  line(name, compiler ? compiler->description() : "none: " + why);
}

void print_bundles() {
  for (const auto& bundle : kernel_bundles())
    line("bundle",
         cat(bundle->path(), ", ", bundle->entries(), " kernels, ", bytes_text(bundle->bytes())));
}

void print_cache() {
  std::cout << "cache\n";
  line("mode", name_of(cache_mode()));
  print_bundles();
  const cache::DiskStore& store = kernel_cache();
  line("directory", store.directory().empty() ? "none" : store.directory());
  if (!store.usable()) {
    line("state", "not usable, kernels are kept in memory alone: " + store.why_unusable());
    return;
  }
  const auto listings = store.list();
  std::uint64_t bytes = 0;
  for (const cache::Listing& listing : listings) bytes += listing.bytes;
  line("state", "usable");
  line("entries", cat(listings.size(), ", ", bytes_text(bytes)));
  if (store.limit() != 0) line("limit", bytes_text(store.limit()));
  std::string counts;
  for (const auto& [name, value] : store.uses().counts)
    counts += cat(counts.empty() ? "" : ", ", name, " ", value);
  line("counted", counts.empty() ? "nothing yet" : counts);
}

void print_environment() {
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
      {"KILN_NVRTC", "the libnvrtc file to use; else it is searched for"},
      {"KILN_HOST_CXX", "the C++ compiler of the host device; else the one Kiln was built with"},
      {"KILN_LINEINFO", "1: kernels carry the lines of their text, for profilers"},
      {"KILN_DUMP_DIR", "gets source, PTX and machine code of every kernel"},
      {"KILN_KERNEL_SOURCE_DIR", "kernel files there take the place of the library's own"},
      {"KILN_CUDNN", "the libcudnn file of kiln bench; else it is searched for"},
      {"KILN_CUBLAS", "the libcublas file of kiln bench; else it is searched for"},
      {"KILN_LOG", "off, error, warn, info, debug or trace; else warn"},
      {"KILN_LOG_FILE", "where the log goes; else standard error"},
  };
  std::cout << "environment\n";
  for (const Variable& variable : variables) {
    const char* const value = std::getenv(variable.name);
    line(variable.name, cat(value ? value : "(unset)", "  ", variable.meaning));
  }
}

int run() {
  std::cout << "kiln " << KILN_VERSION_MAJOR << '.' << KILN_VERSION_MINOR << '.'
            << KILN_VERSION_PATCH << '\n';
  print_devices();
  std::cout << "compilers\n";
  print_compiler("nvrtc", find_nvrtc);
  print_compiler("host", find_host_compiler);
  std::cout << "engines\n";
  for (const Engine* engine : engines()) line(engine->name(), "");
  print_cache();
  print_environment();
  std::cout.flush();
  return 0;
}

int describe_device(const std::string& name) {
  const bool present = name.empty() || name.starts_with("cuda");
  std::cout << describe_as_json(present ? device_of(name)->description() : architecture_of(name));
  return 0;
}

}  // namespace

void add_info_command(CLI::App& app, Run& run_command) {
  CLI::App& command =
      *app.add_subcommand("info", "Devices, compilers, cache and environment of this machine");
  auto device = std::make_shared<std::string>();
  CLI::Option* const describe =
      command
          .add_option("--describe-device", *device,
                      "Print a device's description instead, for `kiln prewarm --device`: cuda, "
                      "cuda:N (default: the first GPU), or an architecture or chip that Kiln knows")
          ->expected(0, 1)
          ->type_name("DEVICE");
  command.callback([device, describe, &run_command] {
    run_command = describe->count() == 0 ? Run(run) : [device] { return describe_device(*device); };
  });
}

}  // namespace kiln::cli
