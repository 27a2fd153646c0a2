#include "plan/kernel_store.hpp"

#include <chrono>
#include <functional>

#include "codegen/source.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "plan/dump.hpp"
#include "plan/single_flight.hpp"

namespace kiln {
namespace {

class Stopwatch {
 public:
  // Milliseconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return elapsed;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<std::byte> to_bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string to_text(const cache::Section* section) {
  if (!section) return "";
  return {reinterpret_cast<const char*>(section->bytes.data()), section->bytes.size()};
}

struct Toolchain {
  std::shared_ptr<const Compiler> compiler;  // null: only the cache can serve
  std::string why_not;
  std::vector<std::string> options;
};

Toolchain toolchain(kilnDeviceKind_t kind, const std::string& arch) {
  Toolchain tools;
  if (kind == KILN_DEVICE_CUDA) {
    tools.compiler = find_nvrtc(tools.why_not);
    tools.options = nvrtc_options(arch);
  } else {
    tools.compiler = find_host_compiler(tools.why_not);
    if (tools.compiler) tools.options = tools.compiler->options(arch);
  }
  return tools;
}

// Everything that decides a kernel's bytes. The source holds the engine, the constants and every
// included kernel file, so nothing else of Kiln needs to be named.
cache::Key make_key(const std::string& source, const std::string& arch, const Toolchain& tools) {
  return cache::Key(
      {{"source", source}, {"options", join(tools.options, " ")}, {"architecture", arch}},
      tools.compiler ? tools.compiler->identity() : "");
}

std::shared_ptr<const KernelImage> from_entry(KernelImage image, cache::Entry&& entry) {
  for (cache::Section& section : entry.sections)
    if (section.name == "binary") image.binary = std::move(section.bytes);
  image.ptx = to_text(entry.find("ptx"));
  image.log = to_text(entry.find("log"));
  return std::make_shared<const KernelImage>(std::move(image));
}

[[noreturn]] void no_compiler(kilnDeviceKind_t kind, const cache::Key& key,
                              const std::string& why) {
  fail(KILN_STATUS_NO_COMPILER, "kernel ", key.text(), " is not in the cache (",
       kernel_cache().directory(), ") and there is no ",
       kind == KILN_DEVICE_CUDA ? "NVRTC" : "C++ compiler for the host device",
       " to compile it: ", why);
}

std::size_t mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

// A kernel on a device. The hash is of the constants' values: their names go with the engine.
struct KernelIdentity {
  const Device* device;
  KernelSpec spec;
  friend bool operator==(const KernelIdentity&, const KernelIdentity&) = default;
};

struct HashConstant {
  std::size_t operator()(std::int64_t value) const { return std::hash<std::int64_t>()(value); }
  std::size_t operator()(bool value) const { return value; }
  std::size_t operator()(const std::vector<std::int64_t>& values) const {
    std::size_t seed = values.size();
    for (const std::int64_t value : values) seed = mix(seed, std::hash<std::int64_t>()(value));
    return seed;
  }
  std::size_t operator()(const TypeName& value) const {
    return std::hash<std::string>()(value.name);
  }
  template <class Divisor>
  std::size_t operator()(const Divisor& value) const {
    return std::hash<std::uint64_t>()(value.divisor);
  }
};

struct HashIdentity {
  std::size_t operator()(const KernelIdentity& identity) const {
    std::size_t seed = std::hash<const void*>()(identity.device);
    seed = mix(seed, std::hash<std::string>()(identity.spec.engine));
    for (const Constant& constant : identity.spec.constants)
      seed = mix(seed, std::visit(HashConstant{}, constant.value));
    return seed;
  }
};

// Loads what make_image gives. A cached binary that the driver refuses is no reason to fail: it is
// compiled again, and the entry rewritten.
FoundKernel make_kernel(const KernelSpec& spec, Device& device, Caching caching) {
  const DeviceDescription& target = device.description();
  const auto load = [&](const FoundImage& found) {
    Stopwatch watch;
    auto loaded = std::make_shared<LoadedKernel>();
    loaded->image = found.image;
    loaded->kernel = device.load(found.image->binary, spec.entry, spec.shared_memory);
    FoundKernel out{loaded, found.origin, found.times};
    out.times.load = watch.lap();
    return out;
  };
  const FoundImage found = make_image(spec, target.kind, target.arch, caching);
  if (found.origin != KILN_KERNEL_DISK) return load(found);
  try {
    return load(found);
  } catch (const Error& error) {
    log::warn(cat("cached kernel ", found.image->key, " does not load (", error.what(),
                  "); compiling it again"));
    return load(make_image(spec, target.kind, target.arch, Caching::refresh));
  }
}

}  // namespace

cache::DiskStore& kernel_cache() {
  // Leaked on purpose: plans may be finalized while the process exits.
  static auto* store = new cache::DiskStore(config().cache_dir, log::warn);
  return *store;
}

cache::Key key_of(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch) {
  return make_key(generate_source(spec, kind), arch, toolchain(kind, arch));
}

FoundImage make_image(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch,
                      Caching caching) {
  FoundImage out;
  Stopwatch watch;
  KernelImage image;
  image.spec = spec;
  image.arch = arch;
  image.source = generate_source(spec, kind);
  out.times.generate = watch.lap();

  const Toolchain tools = toolchain(kind, arch);
  const cache::Key key = make_key(image.source, arch, tools);
  image.key = key.text();
  if (caching == Caching::use) {
    cache::Lookup found = kernel_cache().get(key);
    out.times.lookup = watch.lap();
    if (found.entry && found.entry->find("binary")) {
      out.image = from_entry(std::move(image), std::move(*found.entry));
      dump(*out.image);
      out.origin = KILN_KERNEL_DISK;
      return out;
    }
    if (log::enabled(log::Level::debug))
      log::debug(cat("kernel ", key.text(), " is not cached: ", cache::name_of(found.miss), " ",
                     found.detail));
  }
  if (!tools.compiler) no_compiler(kind, key, tools.why_not);

  dump(image);  // a text that does not compile is worth reading, too
  Compiled compiled =
      tools.compiler->compile(image.source, source_name(spec, arch, image.key), tools.options);
  out.times.compile = compiled.milliseconds;
  out.origin = KILN_KERNEL_COMPILED;
  if (caching != Caching::bypass)
    kernel_cache().put(key, {{{"binary", compiled.binary},
                              {"ptx", to_bytes(compiled.ptx)},
                              {"log", to_bytes(compiled.log)}}});
  image.binary = std::move(compiled.binary);
  image.ptx = std::move(compiled.ptx);
  image.log = std::move(compiled.log);
  dump(image);
  out.image = std::make_shared<const KernelImage>(std::move(image));
  return out;
}

FoundKernel load_kernel(const KernelSpec& spec, Device& device, Caching caching) {
  if (caching != Caching::use) return make_kernel(spec, device, caching);
  constexpr std::size_t most_kernels = 4096;
  static auto* kernels = new SingleFlight<KernelIdentity, LoadedKernel, HashIdentity>(most_kernels);
  FoundKernel out;
  const auto result = kernels->get({&device, spec}, [&] {
    out = make_kernel(spec, device, caching);
    return out.kernel;
  });
  out.kernel = result.value;
  if (!result.made) out.origin = KILN_KERNEL_MEMORY;
  return out;
}

}  // namespace kiln
