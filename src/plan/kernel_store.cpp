#include "plan/kernel_store.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "cache/store/file_lock.hpp"
#include "codegen/source.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "plan/compile_slots.hpp"
#include "plan/dump.hpp"
#include "plan/kernel_text.hpp"
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

std::shared_ptr<const KernelImage> from_entry(KernelImage image, cache::Entry&& entry) {
  for (cache::Section& section : entry.sections)
    if (section.name == "binary") image.binary = std::move(section.bytes);
  image.ptx = to_text(entry.find("ptx"));
  image.log = to_text(entry.find("log"));
  return std::make_shared<const KernelImage>(std::move(image));
}

std::string place_of_cache() {
  const std::string& directory = kernel_cache().directory();
  return directory.empty() ? "any cache" : directory;
}

[[noreturn]] void no_compiler(kilnDeviceKind_t kind, const KernelText& text) {
  fail(KILN_STATUS_NO_COMPILER, "kernel ", text.key.text(), " is not in the cache (",
       kernel_cache().directory(), ") and there is no ",
       kind == KILN_DEVICE_CUDA ? "NVRTC" : "C++ compiler for the host device",
       " to compile it: ", text.why_not);
}

// The reason why a kernel is in none of the layers, as a word.
std::string reason_of(const CachedKernel& found) {
  const cache::Lookup& lookup = found.lookup;
  if (lookup.miss == cache::Miss::absent)
    return found.other_producer ? "absent; a bundle has it from another compiler build" : "absent";
  return cat(cache::name_of(lookup.miss), lookup.detail.empty() ? "" : ": ", lookup.detail);
}

// Makes one kernel in one process of the machine at a time, to save work. A process that times out
// or cannot take the lock compiles the kernel as well; the entry that is published last stays.
class Making {
 public:
  explicit Making(const std::string& lock_path) {
    if (!lock_path.empty()) lock_.emplace(lock_path);
  }
  ~Making() {
    if (lock_ && lock_->held()) lock_->remove();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  // The kernel, if another process made it meanwhile; none if the caller has to compile it.
  std::optional<CachedKernel> wait_for_others(const cache::Key& key, Layers layers) {
    if (!lock_) return std::nullopt;
    const std::chrono::milliseconds patience = std::chrono::seconds(config().compile_wait);
    constexpr std::chrono::milliseconds longest_nap(20);
    const auto end = std::chrono::steady_clock::now() + patience;
    bool waited = false;
    for (std::chrono::milliseconds nap(1);; nap = std::min(2 * nap, longest_nap)) {
      const cache::FileLock::Turn turn = lock_->ask();
      if (turn == cache::FileLock::Turn::none) return std::nullopt;
      // Looked up with the lock held, too: its last holder may have published the kernel.
      if (CachedKernel found = find_kernel(key, layers); found.lookup.entry) return found;
      if (turn == cache::FileLock::Turn::mine) return std::nullopt;
      if (!std::exchange(waited, true)) ++cache_counters().waits;
      if (std::chrono::steady_clock::now() >= end) {
        ++cache_counters().wait_timeouts;
        log::warn(cat("kernel ", key.text(), " is being compiled by another process for more than ",
                      patience.count() / 1000, " s; compiling it as well"));
        return std::nullopt;
      }
      std::this_thread::sleep_for(nap);
    }
  }

 private:
  std::optional<cache::FileLock> lock_;
};

// A compiler's message with the user's own file and line in place of the generated text's, wherever
// these lines come from an edited file: "NAME(12)", as NVRTC writes it, and "NAME:12", as others.
std::string with_edited_places(const std::string& message, const std::string& name,
                               const std::vector<SourceLine>& lines) {
  std::string out;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t found = message.find(name, at);
    out += message.substr(at, found - at);
    if (found == std::string::npos) break;
    at = found + name.size();
    const std::size_t digits = at + 1;
    const std::size_t end =
        std::min(message.find_first_not_of("0123456789", digits), message.size());
    std::size_t line = 0;
    std::from_chars(message.data() + std::min(digits, end), message.data() + end, line);
    if (line == 0 || line > lines.size() || lines[line - 1].path.empty()) {
      out += name;
      continue;
    }
    constexpr std::string_view folder = "/kiln/";  // in which NVRTC finds the text
    if (out.ends_with(folder)) out.resize(out.size() - folder.size());
    out += cat(lines[line - 1].path, message[at], lines[line - 1].number);
    at = end;
  }
  return out;
}

Compiled compile(const KernelText& text, const KernelSpec& spec, kilnDeviceKind_t kind,
                 const std::string& name) {
  const CompileSlot slot;
  Compiled compiled;
  try {
    compiled = text.compiler->compile(text.source, name, text.options);
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_COMPILE_FAILED || config().kernel_source_dir.empty()) throw;
    fail(KILN_STATUS_COMPILE_FAILED,
         with_edited_places(error.what(), name, source_lines(spec, kind)));
  }
  cache_counters().count(KILN_KERNEL_COMPILED);
  cache_counters().compile_microseconds += static_cast<std::uint64_t>(compiled.milliseconds * 1000);
  return compiled;
}

std::size_t mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

// The key of a loaded kernel on a device. The hash covers the constants' values; their names follow
// from the engine.
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
  std::size_t operator()(const MacroText& value) const {
    return std::hash<std::string>()(value.text);
  }
  std::size_t operator()(const LateValue& value) const { return value.offset; }
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

// Loads the result of make_image(). If the driver refuses a cached binary, the next layer is tried;
// at last the kernel is compiled and the user's entry replaced.
FoundKernel make_kernel(const KernelSpec& spec, Device& device, Caching caching,
                        const MadeFor& made_for) {
  const DeviceDescription& target = device.description();
  for (;;) {
    const FoundImage found = make_image(spec, target.kind, target.arch, caching, made_for);
    try {
      Stopwatch watch;
      auto loaded = std::make_shared<LoadedKernel>();
      loaded->image = found.image;
      loaded->kernel = device.load(found.image->binary, spec.entry, spec.shared_memory);
      FoundKernel out{loaded, found.origin, found.times, found.account};
      out.times.load = watch.lap();
      return out;
    } catch (const Error& error) {
      if (found.origin == KILN_KERNEL_COMPILED || cache_mode() == CacheMode::strict ||
          caching == Caching::cached)
        throw;
      const bool bundled = found.origin == KILN_KERNEL_BUNDLE;
      log::warn(cat("kernel ", found.image->key, ", a ", found.account, ", does not load (",
                    error.what(), "); ", bundled ? "looking further" : "compiling it again"));
      caching = bundled ? Caching::past_bundles : Caching::refresh;
    }
  }
}

}  // namespace

cache::Key key_of(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch) {
  return kernel_text(spec, kind, arch).key;
}

FoundImage make_image(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch,
                      Caching caching, const MadeFor& made_for) {
  Stopwatch watch;
  FoundImage out;
  KernelText text = kernel_text(spec, kind, arch);
  KernelImage image;
  image.spec = spec;
  image.arch = arch;
  image.source = text.source;
  image.key = text.key.text();
  out.times.generate = watch.lap();

  const CacheMode mode = cache_mode();
  const auto use = [&](CachedKernel&& found) {
    out.origin = found.origin;
    out.account = found.origin == KILN_KERNEL_BUNDLE ? cat("hit in bundle ", found.lookup.detail)
                                                     : "hit in the user's cache";
    out.image = from_entry(std::move(image), std::move(*found.lookup.entry));
    dump(*out.image);
    cache_counters().count(out.origin);
  };
  std::optional<Making> making;
  std::string reason = caching == Caching::refresh ? "refused by the driver" : "not asked for";
  const bool compiles = mode != CacheMode::strict && caching != Caching::cached;
  const bool looks = caching != Caching::refresh && caching != Caching::bypass;
  if (looks && mode != CacheMode::off) {
    const Layers layers = caching == Caching::past_bundles ? Layers::user : Layers::all;
    CachedKernel found = find_kernel(text.key, layers);
    if (!found.lookup.entry && mode == CacheMode::on && compiles && text.compiler) {
      making.emplace(kernel_cache().lock_path(text.key));
      if (std::optional<CachedKernel> made = making->wait_for_others(text.key, layers))
        found = std::move(*made);
    }
    out.times.lookup = watch.lap();
    if (found.lookup.entry) {
      use(std::move(found));
      return out;
    }
    if (caching != Caching::cached) cache_counters().count_miss(found);
    reason = reason_of(found);
  }
  if (!compiles) {
    const std::string releases = mode == CacheMode::strict ? bundles_of_other_releases() : "";
    fail(KILN_STATUS_NOT_CACHED, "kernel ", image.key, " for ", arch,
         " is in no bundle and not in ", place_of_cache(), " (", reason,
         releases.empty() ? "" : "; ", releases, ")",
         mode == CacheMode::strict ? ", and KILN_CACHE=strict forbids to compile it"
                                   : "; it is not compiled now");
  }
  if (!text.compiler) no_compiler(kind, text);

  dump(image);  // before compiling: a text that does not compile is worth reading, too
  Compiled compiled = compile(text, spec, kind, source_name(spec, arch, image.key));
  out.times.compile = compiled.milliseconds;
  out.origin = KILN_KERNEL_COMPILED;
  out.account = cat("miss (", reason, "), compiled");
  if (caching != Caching::bypass && mode == CacheMode::on)
    kernel_cache().put(text.key, {{{"binary", compiled.binary},
                                   {"ptx", to_bytes(compiled.ptx)},
                                   {"log", to_bytes(compiled.log)},
                                   {"made for", to_bytes(made_for ? made_for() : "")}}});
  image.binary = std::move(compiled.binary);
  image.ptx = std::move(compiled.ptx);
  image.log = std::move(compiled.log);
  dump(image);
  out.image = std::make_shared<const KernelImage>(std::move(image));
  return out;
}

FoundKernel load_kernel(const KernelSpec& spec, Device& device, Caching caching,
                        const MadeFor& made_for) {
  if (caching != Caching::use && caching != Caching::cached)
    return make_kernel(spec, device, caching, made_for);
  static constinit SingleFlight<KernelIdentity, LoadedKernel, HashIdentity> kernels(
      "loaded kernels", [] { return static_cast<std::size_t>(config().loaded_kernels); });
  const KernelIdentity identity{&device, spec};
  FoundKernel out;
  bool made = false;
  if (caching == Caching::use) {
    const auto result = kernels.get(identity, [&] {
      out = make_kernel(spec, device, caching, made_for);
      return out.kernel;
    });
    out.kernel = result.value;
    made = result.made;
  } else if (!(out.kernel = kernels.find(identity))) {
    out = make_kernel(spec, device, caching, made_for);
    kernels.add(identity, out.kernel);
    made = true;
  }
  if (!made) {
    out.origin = KILN_KERNEL_MEMORY;
    out.account = "hit in memory";
    cache_counters().count(KILN_KERNEL_MEMORY);
  }
  return out;
}

}  // namespace kiln
