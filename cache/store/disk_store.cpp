#include "cache/store/disk_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <tuple>
#include <utility>

#include "cache/entry_format.hpp"
#include "cache/store/files.hpp"
#include "cache/store/private_directory.hpp"

namespace kiln::cache {
namespace {

Lookup missed(Miss miss, std::string detail) { return {std::nullopt, miss, std::move(detail)}; }

// The kind of miss for an error. A file that vanished (evicted, cleared, or replaced on a network
// file system) is absent. A link or other special file in an entry's place is a corrupt entry,
// which publishing replaces.
Miss miss_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESTALE: return Miss::absent;
    case ELOOP:
    case ENXIO:
    case EISDIR:
    case EAGAIN: return Miss::corrupt;
    default: return Miss::unreadable;
  }
}

struct Loaded {
  FileBytes file;
  EntryView view;  // into `file`
  Miss miss = Miss::none;
  std::string detail;
};

Loaded load(const std::string& path, uid_t owner) {
  Loaded loaded;
  loaded.file = read_entry_file(path, owner);
  if (!loaded.file.refusal.empty()) {
    loaded.miss = Miss::corrupt;
    loaded.detail = path + " " + loaded.file.refusal;
    return loaded;
  }
  if (const int error = loaded.file.error) {
    loaded.miss = miss_of(error);
    loaded.detail = path + ": " + error_text(error);
    return loaded;
  }
  Decoded decoded = decode(loaded.file.bytes());
  if (decoded.flaw) {
    loaded.miss = Miss::corrupt;
    loaded.detail = path + ": " + decoded.flaw;
    return loaded;
  }
  loaded.view = std::move(decoded.view);
  return loaded;
}

Lookup load_if_of(const Key& key, const std::string& path, uid_t owner) {
  Loaded loaded = load(path, owner);
  if (loaded.miss != Miss::none) return missed(loaded.miss, std::move(loaded.detail));
  if (const std::string differs = difference(key, loaded.view); !differs.empty())
    return missed(Miss::collision, path + ": another kernel's, by its " + differs);
  return {copy_sections(loaded.view), Miss::none, "", std::string(loaded.view.producer)};
}

std::string version_path(const std::string& directory) {
  return directory + "/" + std::string(version_directory);
}

// Does the work. It throws only if memory is exhausted, and then `otherwise` is returned.
template <class Result, class Work>
Result guarded(Result otherwise, Work work) {
  try {
    return work();
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace

const Section* Entry::find(std::string_view name) const {
  for (const Section& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

const char* name_of(Miss miss) {
  switch (miss) {
    case Miss::none: return "none";
    case Miss::absent: return "absent";
    case Miss::corrupt: return "corrupt";
    case Miss::collision: return "collision";
    case Miss::unreadable: return "unreadable";
    case Miss::disabled: return "disabled";
  }
  return "unknown";
}

DiskStore::DiskStore(std::string directory, Warn warn, int hash_digits)
    : directory_(std::move(directory)), warn_(std::move(warn)), hash_digits_(hash_digits) {
  guarded(false, [&] {
    const std::string settled = directory_.empty() ? "" : settled_path(directory_);
    if (directory_.empty())
      refuse("", "no HOME, XDG_CACHE_HOME or KILN_CACHE_DIR");
    else if (settled.empty())
      refuse(directory_, "is relative to a working directory that is not known");
    else
      directory_ = settled;
    return examine_folders();
  });
}

DiskStore::~DiskStore() { delete refusal_.load(); }

std::string DiskStore::why_unusable() const {
  const std::string* reason = refusal_.load();
  return reason ? *reason : "";
}

void DiskStore::warn_once(const std::string& text) const {
  if (!warn_ || warned_.exchange(true)) return;
  try {
    warn_(text);
  } catch (...) {  // a failing logger must not fail the cache
  }
}

void DiskStore::refuse(const std::string& path, std::string_view reason) const {
  auto text = std::make_unique<const std::string>(path.empty() ? std::string(reason)
                                                               : path + " " + std::string(reason));
  warn_once("no kernel cache on disk: " + *text);
  const std::string* none = nullptr;
  if (refusal_.compare_exchange_strong(none, text.get())) static_cast<void>(text.release());
}

// Whether entries may be looked up and written: the cache's directory exists, and no other user can
// write to it or to the version folder inside.
bool DiskStore::examine_folders() const {
  if (refusal_.load()) return false;
  const std::string version = version_path(directory_);
  const Standing outer = examine(directory_);
  const Standing inner = outer.is == Standing::sound ? examine(version) : Standing();
  if (outer.is == Standing::refused) refuse(directory_, outer.reason);
  if (inner.is == Standing::refused) refuse(version, inner.reason);
  const bool sound = outer.is == Standing::sound && inner.is != Standing::refused;
  if (sound) owner_.store(::geteuid());
  sound_.store(sound);
  return sound;
}

void DiskStore::count(Miss miss) const {
  switch (miss) {
    case Miss::none: ++hits_; break;
    case Miss::absent: ++absent_; break;
    case Miss::corrupt: ++corrupt_; break;
    case Miss::collision: ++collisions_; break;
    case Miss::unreadable: ++unreadable_; break;
    case Miss::disabled: break;
  }
}

std::string DiskStore::shard_path(const EntryName& name) const {
  return version_path(directory_) + "/" + name.shard();
}

Lookup DiskStore::get(const Key& key) const {
  Lookup lookup = find(key);
  // The folder may have been replaced by another user's since it was examined.
  if (!lookup.entry && usable() && !examine_folders() && !usable())
    lookup = missed(Miss::disabled, why_unusable());
  count(lookup.miss);
  return lookup;
}

// A hit does not examine the folders, which would cost system calls, because the owner and mode of
// the entry's own file are checked.
Lookup DiskStore::find(const Key& key) const {
  if (!usable() || (!sound_.load() && !examine_folders()))
    return usable() ? missed(Miss::absent, "") : missed(Miss::disabled, why_unusable());
  const EntryName name = entry_name(key, hash_digits_);
  if (name.producer_hash.empty()) return find_newest(key, name);
  return find_named(key, name);
}

Lookup DiskStore::find_named(const Key& key, const EntryName& name) const {
  Lookup lookup = load_if_of(key, shard_path(name) + "/" + name.file(), owner_.load());
  if (limit_ != 0 && lookup.entry) use_log_.note(name);
  return lookup;
}

Lookup DiskStore::find_newest(const Key& key, const EntryName& wanted) const {
  const std::string path = shard_path(wanted);
  OpenDirectory shard(path);
  if (!shard) return missed(miss_of(shard.error()), path + ": " + error_text(shard.error()));

  using Candidate = std::tuple<std::int64_t, long, std::string>;  // modified (s, ns), file
  std::vector<Candidate> candidates;
  for (std::string& file : shard.names()) {
    EntryName name;
    struct stat status;
    if (parse_entry_name(file, name) && name.content_hash == wanted.content_hash &&
        shard.status(file, status))
      candidates.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, std::move(file));
  }
  std::sort(candidates.rbegin(), candidates.rend());

  Lookup best = missed(Miss::absent, "");  // the miss of the newest file
  for (const Candidate& candidate : candidates) {
    EntryName name;
    parse_entry_name(std::get<std::string>(candidate), name);
    Lookup lookup = find_named(key, name);
    if (lookup.miss == Miss::none) return lookup;
    if (best.miss == Miss::absent) best = std::move(lookup);
  }
  return best;
}

bool DiskStore::put(const Key& key, const Entry& entry) {
  const std::string failure =
      guarded(std::string("out of memory"), [&] { return publish(key, entry); });
  if (failure.empty()) {
    ++published_;
    return true;
  }
  ++publish_failures_;
  guarded(0, [&] {
    warn_once("the kernel cache in " + directory_ + " cannot be written: " + failure);
    return 0;
  });
  return false;
}

std::string DiskStore::publish(const Key& key, const Entry& entry) {
  if (!usable()) return why_unusable();
  if (key.producer().empty()) return "the key names no producer";
  const std::vector<std::byte> bytes = encode(key, entry);
  if (bytes.size() > max_entry_bytes)
    return "an entry of " + std::to_string(bytes.size()) + " bytes is over the limit of " +
           std::to_string(max_entry_bytes);

  if (limit_ != 0 && bytes.size() > limit_)
    return "an entry of " + std::to_string(bytes.size()) + " bytes is over the cache's limit of " +
           std::to_string(limit_);

  const EntryName name = entry_name(key, hash_digits_);
  const std::string shard = shard_path(name);
  // A missing folder is made, and made again if another process clears the cache meanwhile.
  int error = ENOENT;
  for (int attempt = 0; attempt < 3 && (error == ENOENT || error == ESTALE); ++attempt) {
    if (attempt > 0 || !examine_folders()) {
      if (std::string why = make_place(name); !why.empty()) return why;
    }
    if (attempt == 0 && limit_ != 0)
      add_to(make_room(version_path(directory_), bytes.size(), limit_));
    error = publish_file(shard, name.file(), bytes);
  }
  if (error) return error_text(error);
  if (OpenDirectory opened(shard); opened) remove_abandoned(opened);
  if (limit_ != 0) use_log_.flush(version_path(directory_), "");
  return "";
}

std::string DiskStore::make_place(const EntryName& name) {
  if (const int error = make_private(directory_)) return error_text(error);
  if (!examine_folders()) return usable() ? error_text(ENOENT) : why_unusable();
  const int error = make_private(shard_path(name));
  return error ? error_text(error) : "";
}

std::string DiskStore::lock_path(const Key& key) {
  return guarded(std::string(), [&] {
    if (!usable()) return std::string();
    const EntryName name = entry_name(key, hash_digits_);
    return make_place(name).empty() ? shard_path(name) + "/" + name.lock() : std::string();
  });
}

void DiskStore::add_to(Pruned pruned) {
  evicted_ += pruned.entries;
  evicted_bytes_ += pruned.bytes;
}

Pruned DiskStore::prune(std::uint64_t target, std::int64_t unused_since) {
  return guarded(Pruned(), [&] {
    if (!examine_folders()) return Pruned();
    use_log_.flush(version_path(directory_), "");
    const Pruned pruned = kiln::cache::prune(version_path(directory_), target, unused_since);
    add_to(pruned);
    return pruned;
  });
}

void DiskStore::flush(std::string_view counts) {
  guarded(0, [&] {
    if (examine_folders()) use_log_.flush(version_path(directory_), counts);
    return 0;
  });
}

Uses DiskStore::uses() const {
  return guarded(Uses(),
                 [&] { return examine_folders() ? read_uses(version_path(directory_)) : Uses(); });
}

std::vector<Listing> DiskStore::list() const {
  return guarded(std::vector<Listing>(), [&] {
    std::vector<Listing> listings;
    if (!examine_folders()) return listings;
    const Uses noted = uses();
    const std::string path = version_path(directory_);
    OpenDirectory top(path);
    for_each_shard(top, [&](OpenDirectory& shard, const std::string& shard_name) {
      for (const std::string& file : shard.names()) {
        EntryName name;
        struct stat status;
        if (!parse_entry_name(file, name) || !shard.status(file, status) ||
            !S_ISREG(status.st_mode))
          continue;
        listings.push_back({path + "/" + shard_name + "/" + file, name.content_hash,
                            name.producer_hash, static_cast<std::uint64_t>(status.st_size),
                            status.st_mtim.tv_sec, last_use(status, name, noted)});
      }
    });
    return listings;
  });
}

Lookup DiskStore::read(const Listing& listing, std::vector<Field>* content,
                       std::string* producer) const {
  return guarded(missed(Miss::unreadable, "out of memory"), [&] {
    Loaded loaded = load(listing.path, owner_.load());
    if (loaded.miss != Miss::none) return missed(loaded.miss, std::move(loaded.detail));
    if (content) *content = copy_content(loaded.view);
    if (producer) *producer = loaded.view.producer;
    return Lookup{copy_sections(loaded.view), Miss::none, "", std::string(loaded.view.producer)};
  });
}

std::uint64_t DiskStore::clear() {
  std::uint64_t cleared = 0;
  guarded(0, [&] {
    if (!examine_folders()) return 0;
    OpenDirectory top(version_path(directory_));
    for_each_shard(top, [&](OpenDirectory& shard, const std::string& shard_name) {
      for (const std::string& file : shard.names()) {
        EntryName name;
        if (parse_entry_name(file, name))
          cleared += shard.remove(file);
        else if (is_temporary_name(file) || is_lock_name(file))
          shard.remove(file);
      }
      top.remove_directory(shard_name);  // stays if it holds anything else
    });
    if (top) {
      for (const std::string& file : top.names())
        if (is_temporary_name(file)) top.remove(file);
      top.remove(std::string(total_name));
      top.remove(std::string(use_log_name));
    }
    return 0;
  });
  return cleared;
}

Counters DiskStore::counters() const {
  return {hits_,      absent_,           corrupt_, collisions_,   unreadable_,
          published_, publish_failures_, evicted_, evicted_bytes_};
}

}  // namespace kiln::cache
