// kiln info: what this machine has. Works with neither GPU nor driver nor compiler.
#include <cstdlib>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "compile/compiler.hpp"
#include "core/text.hpp"
#include "device/device.hpp"
#include "engines/engine.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

void line(const std::string& name, const std::string& value) {
  std::cout << "  " << padded(name, 16) << ' ' << value << '\n';
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
  line(name, compiler ? compiler->identity() : "none: " + why);
}

void print_cache() {
  std::cout << "cache\n";
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
}

void print_environment() {
  struct Variable {
    const char *name, *meaning;
  };
  constexpr Variable variables[] = {
      {"KILN_CACHE_DIR", "where kernels are kept; else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln"},
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

}  // namespace

void add_info_command(CLI::App& app, Run& run_command) {
  app.add_subcommand("info", "Devices, compilers, cache and environment of this machine")
      ->callback([&run_command] { run_command = run; });
}

}  // namespace kiln::cli
