#include "cache/store/budget.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "cache/bundle/bytes.hpp"
#include "cache/hash.hpp"
#include "cache/store/file_lock.hpp"
#include "cache/store/files.hpp"
#include "cache/store/layout.hpp"
#include "cache/store/use_log.hpp"

namespace kiln::cache {
namespace {

struct Candidate {
  std::int64_t used;
  std::uint64_t bytes;
  std::string shard, file;
};

struct Survey {
  std::vector<Candidate> entries;
  std::uint64_t bytes = 0;  // includes unfinished entries
};

Survey survey(OpenDirectory& top, const Uses& uses) {
  Survey found;
  remove_abandoned(top);
  for_each_shard(top, [&](OpenDirectory& shard, const std::string& shard_name) {
    remove_abandoned(shard);
    for (std::string& file : shard.names()) {
      struct stat status;
      EntryName name;
      const bool is_entry = parse_entry_name(file, name);
      if (!is_entry && !is_temporary_name(file)) continue;
      if (!shard.status(file, status)) continue;  // it was removed meanwhile
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      found.bytes += bytes;
      if (!is_entry) continue;
      found.entries.push_back({last_use(status, name, uses), bytes, shard_name, std::move(file)});
    }
  });
  return found;
}

// The content of the total's file: the number and its hash, so that an incomplete write is noticed.
std::vector<std::byte> encode_total(std::uint64_t total) {
  ByteWriter file;
  file.integer(total);
  file.raw(hash128(file.bytes()));
  return file.take();
}

constexpr std::size_t total_bytes = 8 + sizeof(Digest);

bool decode_total(std::span<const std::byte> file, std::uint64_t& total) {
  if (file.size() != total_bytes || !std::ranges::equal(hash128(file.first(8)), file.subspan(8)))
    return false;
  total = ByteReader(file).integer();
  return true;
}

}  // namespace

std::int64_t last_use(const struct stat& status, const EntryName& name, const Uses& uses) {
  const std::int64_t used = std::max(status.st_mtim.tv_sec, status.st_atim.tv_sec);
  const auto noted = uses.last.find(name.stem());
  return noted == uses.last.end() ? used : std::max(used, noted->second);
}

Pruned prune(const std::string& version_path, std::uint64_t target, std::int64_t unused_since) {
  Pruned result;
  OpenDirectory top(version_path);
  if (!top) return result;
  Uses uses = read_uses(version_path);
  Survey found = survey(top, uses);
  std::sort(found.entries.begin(), found.entries.end(),
            [](const Candidate& a, const Candidate& b) { return a.used < b.used; });
  result.bytes_left = found.bytes;
  result.entries_left = found.entries.size();
  for (const Candidate& entry : found.entries) {
    if (result.bytes_left <= target && entry.used >= unused_since) break;
    OpenDirectory shard(top, entry.shard);
    struct stat still;
    if (shard && shard.remove(entry.file)) {
      ++result.entries;
      result.bytes += entry.bytes;
    } else if (shard && shard.status(entry.file, still)) {
      continue;  // the system refuses to remove it
    }            // otherwise another process has removed it
    result.bytes_left -= entry.bytes;
    --result.entries_left;
    uses.last.erase(entry.file.substr(0, entry.file.find('.')));
  }
  if (result.entries > 0) rewrite_uses(version_path, uses);
  return result;
}

Pruned make_room(const std::string& version_path, std::uint64_t bytes, std::uint64_t limit) {
  constexpr std::chrono::milliseconds patience(2000);
  FileLock lock(version_path + "/" + std::string(total_name));
  const bool locked = lock.wait(patience);
  std::uint64_t total = 0;
  const bool known = locked && decode_total(lock.read(total_bytes), total);
  Pruned pruned;
  if (!known || bytes > limit || total > limit - bytes) {
    const std::uint64_t low = limit - limit / 10;
    pruned = prune(version_path, low > bytes ? low - bytes : 0);
    total = pruned.bytes_left;
  }
  if (locked) lock.write(encode_total(total + bytes));
  return pruned;
}

}  // namespace kiln::cache
