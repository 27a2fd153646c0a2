#include "plan/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "cache/store/private_directory.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log/log.hpp"
#include "core/process/file_descriptor.hpp"
#include "core/process/loader.hpp"
#include "core/process/per_process.hpp"
#include "core/process/process_end.hpp"
#include "core/quantity.hpp"
#include "core/split.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

CacheMode read_mode() {
  const std::string& text = config().cache_mode;
  for (const CacheMode mode :
       {CacheMode::on, CacheMode::readonly, CacheMode::strict, CacheMode::off})
    if (text == name_of(mode)) return mode;
  return CacheMode::on;
}

std::uint64_t read_limit() {
  const std::string& text = config().cache_max_size;
  std::uint64_t bytes = default_cache_bytes;
  if (!text.empty() && (!parse_bytes(text, bytes) || bytes == 0)) {
    bytes = default_cache_bytes;
    log::warn(cat("KILN_CACHE_MAX_SIZE is ", text,
                  "; expected bytes, as in 512M or 4G. The default holds, 4G"));
  }
  return bytes;
}

// Runs at the end of a process that used the user's cache: writes the times at which entries were
// used, and the counters, in one write. A forked child leaves this to its parent.
void write_down_uses() {
  std::string counts;
  for (const NamedCount& count : count_values())
    if (count.value > 0) counts += cat(counts.empty() ? "" : " ", count.name, "=", count.value);
  kernel_cache().flush(counts);
}

std::unique_ptr<cache::DiskStore> make_store() {
  const bool off = cache_mode() == CacheMode::off;
  auto store = std::make_unique<cache::DiskStore>(config().cache_dir, off ? nullptr : log::warn);
  if (cache_mode() == CacheMode::on) {
    store->set_limit(read_limit());
    static constinit std::atomic<std::uint64_t> owner{0};
    owner = fork_generation();
    at_process_end(AtEnd::use_log, [] {
      if (fork_generation() == owner) write_down_uses();
    });
  }
  return store;
}

// Whether a file cannot be opened now for lack of descriptors or memory, so that a later try may
// succeed.
bool is_out_of_reach_now(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return !file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
}

// The file that contains this code: the library, or a program that is linked with it statically.
std::filesystem::path library_file() {
  std::error_code error;
  return std::filesystem::canonical(file_of(reinterpret_cast<const void*>(&library_file)), error);
}

// The owner of the library file. Their code already runs in this process, so their bundles may,
// too.
uid_t owner_of_library() {
  struct stat status;
  const std::filesystem::path file = library_file();
  const bool known = !file.empty() && ::stat(file.c_str(), &status) == 0;
  return known ? status.st_uid : cache::Bundle::nobody_else;
}

Bundles open_bundles() {
  std::vector<std::string> paths;
  for (const std::string_view path : split(config().bundle_path, ':'))
    if (!path.empty()) paths.emplace_back(path);
  std::error_code ignored;
  if (const std::string beside = bundle_beside_library();
      !beside.empty() && std::filesystem::exists(beside, ignored))
    paths.push_back(beside);
  const uid_t trusted = owner_of_library();
  Bundles bundles;
  for (const std::string& named : paths) {
    // An absolute path: each hit opens the file again, perhaps in another working directory.
    const std::string path = cache::settled_path(named);
    std::string why;
    if (auto bundle = cache::Bundle::open(path, why, trusted))
      bundles.push_back(std::move(bundle));
    else if (is_out_of_reach_now(path))
      fail(KILN_STATUS_ALLOC_FAILED, "the kernel bundle ", path, " ", why);
    else
      log::warn(cat("the kernel bundle ", path, " ", why));
  }
  return bundles;
}

// Whether `miss` is a more important reason to report than `than`.
bool is_worse(cache::Miss miss, cache::Miss than) {
  return than == cache::Miss::absent && miss != cache::Miss::absent;
}

CachedKernel find_in(Layers layers, const cache::Key& key) {
  CachedKernel found;
  std::span<const std::unique_ptr<const cache::Bundle>> bundles;
  if (layers == Layers::all) bundles = kernel_bundles();
  for (const auto& bundle : bundles) {
    cache::Lookup lookup = bundle->get(key, &found.other_producer);
    if (lookup.entry && lookup.entry->find("binary"))
      return {std::move(lookup), KILN_KERNEL_BUNDLE, false};
    if (is_worse(lookup.miss, found.lookup.miss)) found.lookup = std::move(lookup);
  }
  cache::Lookup lookup = kernel_cache().get(key);
  if (lookup.entry && !lookup.entry->find("binary"))
    lookup = {std::nullopt, cache::Miss::corrupt, "an entry without machine code"};
  if (lookup.entry || found.lookup.miss == cache::Miss::absent) found.lookup = std::move(lookup);
  return found;
}

}  // namespace

CacheMode cache_mode() {
  static constinit Once<CacheMode> mode("KILN_CACHE");
  return mode.get(read_mode);
}

const char* name_of(CacheMode mode) {
  switch (mode) {
    case CacheMode::on: return "on";
    case CacheMode::readonly: return "readonly";
    case CacheMode::strict: return "strict";
    case CacheMode::off: return "off";
  }
  return "?";
}

cache::DiskStore& kernel_cache() {
  static constinit Once<cache::DiskStore> store("kernel cache");
  return *store.get_if(make_store);
}

const Bundles& kernel_bundles() {
  static constinit Once<Bundles> bundles("bundles");
  return bundles.get(open_bundles);
}

std::string bundles_of_other_releases() {
  const std::string own = cat(KILN_VERSION_MAJOR, ".", KILN_VERSION_MINOR, ".", KILN_VERSION_PATCH);
  std::string text;
  for (const auto& bundle : kernel_bundles()) {
    std::string flaw;
    const auto json = parse_json(bundle->provenance(flaw));
    if (!json.is_object() || !json.contains("library") || !json["library"].is_string()) continue;
    const std::string library = json["library"].get<std::string>();
    if (library == own) continue;
    const bool plain = library.find_first_not_of("0123456789.") == std::string::npos;
    text += cat(bundle->path(), " is of ", plain ? "Kiln " + library : "another release", ", ");
  }
  return text.empty() ? "" : cat(text, "and this is Kiln ", own);
}

std::string bundle_beside_library() {
  const std::filesystem::path file = library_file();
  return file.empty() ? "" : file.parent_path() / "kiln.bundle";
}

CachedKernel find_kernel(const cache::Key& key, Layers layers) {
  CachedKernel found = find_in(layers, key);
  if (found.lookup.entry || cache_mode() != CacheMode::strict || key.producer().empty())
    return found;
  CachedKernel any = find_in(layers, cache::Key(key.content(), ""));
  return any.lookup.entry ? std::move(any) : std::move(found);
}

void CacheCounters::count(kilnKernelOrigin_t origin) {
  switch (origin) {
    case KILN_KERNEL_COMPILED: ++compiled; break;
    case KILN_KERNEL_MEMORY: ++memory; break;
    case KILN_KERNEL_DISK: ++disk; break;
    case KILN_KERNEL_BUNDLE: ++bundle; break;
  }
}

void CacheCounters::count_miss(const CachedKernel& found) {
  switch (found.lookup.miss) {
    case cache::Miss::none: break;
    case cache::Miss::absent: ++(found.other_producer ? other_producer : absent); break;
    case cache::Miss::corrupt: ++corrupt; break;
    case cache::Miss::collision: ++collision; break;
    case cache::Miss::unreadable: ++unreadable; break;
    case cache::Miss::disabled: ++disabled; break;
  }
}

CacheCounters& cache_counters() {
  static constinit CacheCounters counters;
  return counters;
}

std::vector<NamedCount> count_values() {
  const CacheCounters& own = cache_counters();
  const cache::Counters store = kernel_cache().counters();
  return {{"hits_memory", own.memory},
          {"hits_bundle", own.bundle},
          {"hits_disk", own.disk},
          {"compiled", own.compiled},
          {"compile_ms", own.compile_microseconds / 1000},
          {"misses_absent", own.absent},
          {"misses_other_producer", own.other_producer},
          {"misses_corrupt", own.corrupt},
          {"misses_collision", own.collision},
          {"misses_unreadable", own.unreadable},
          {"misses_disabled", own.disabled},
          {"waits", own.waits},
          {"wait_timeouts", own.wait_timeouts},
          {"published", store.published},
          {"publish_failures", store.publish_failures},
          {"evicted", store.evicted},
          {"evicted_bytes", store.evicted_bytes}};
}

}  // namespace kiln
