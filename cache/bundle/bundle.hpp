// A bundle: many entries in one read-only file, for machines that should find kernels instead of
// compiling them.
//
//   header       64 bytes: magic "KILNBNDL", version, zeros
//   entries      each in the format of its own file (entry_format.hpp), back to back
//   provenance   text (JSON) by the maker of the bundle
//   index        a hash table in pages of 4 KiB, each with a checksum: content hash, producer hash,
//                offset, size
//   trailer      128 bytes: the offsets of these parts, the file's size, checksums, magic
//   "KILNDONE"
//
// The trailer marks a complete file: a file without one, or of another size than it states, is not
// a bundle. Opening reads at most the last 64 KiB of any bundle, which contain the index of a small
// one. Nothing is mapped, and no descriptor is kept: a miss costs no system call once its page is
// known, a hit costs open, fstat, pread and close.
//
// A bundle is machine code that will be executed, so it is trusted like a shared library: its owner
// must be the effective user or root (or `trusted`, see open()), and not everybody may write to it.
// Sizes in the file are checked against the file's size and the limits of bundle_format.hpp.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/hash.hpp"
#include "cache/key.hpp"
#include "cache/store/disk_store.hpp"

namespace kiln::cache {

// The offsets and sizes of a bundle's parts.
struct BundleLayout {
  std::uint64_t file_bytes = 0, entries = 0, index_at = 0, pages = 0, provenance_at = 0,
                provenance_bytes = 0;
  Digest provenance_digest{};
};

struct BundleRecord {
  std::string content_hash, producer_hash;  // hex
  std::uint64_t offset = 0, bytes = 0;
};

// Safe to use from any number of threads at once, and across fork(). If the file is replaced (by
// rename) while the bundle is open, its lookups miss; the new file needs another open().
class Bundle {
 public:
  // The bundle; null if there is no sound one, and `why` is then the end of a sentence ("is not
  // complete"): no regular file, a file that everybody may write to, one without a trailer, or one
  // of another owner than the effective user, root and `trusted` (-1: nobody else).
  static std::unique_ptr<const Bundle> open(const std::string& path, std::string& why,
                                            uid_t trusted = nobody_else);
  static constexpr uid_t nobody_else = static_cast<uid_t>(-1);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t entries() const { return layout_.entries; }
  std::uint64_t bytes() const { return layout_.file_bytes; }

  // Looks an entry up, comparing the full key. A key of any producer finds any entry of its
  // content. `other`, if not null, becomes true if there is an entry of this content, but of
  // another producer. Throws std::bad_alloc.
  Lookup get(const Key& key, bool* other = nullptr) const;

  // For inspecting a bundle. Each call opens the file again, and sets `flaw` to "" if it is sound.
  // There are never more records than the file has room for.
  std::vector<BundleRecord> records(std::string& flaw) const;  // in order of the hashes
  // The bytes of one entry, which decode() takes; empty if they cannot be read.
  std::vector<std::byte> entry(const BundleRecord& record) const;
  std::string provenance(std::string& flaw) const;

 private:
  struct Page;
  class Reader;

  Bundle(std::string path, const BundleLayout& layout, uid_t trusted);
  const Page* page(std::uint64_t number, Reader& reader) const;
  void keep(std::uint64_t number, std::span<const std::byte> bytes) const;

  std::string path_;
  BundleLayout layout_;
  uid_t trusted_;
  // Pages are read when first needed and then kept. If two threads read a page, the first one's is
  // kept.
  std::unique_ptr<std::atomic<const Page*>[]> pages_;
};

// Writes a bundle into a temporary file, which gets its name when it is complete. It has no name
// until then, where the file system allows that, so that a killed process leaves nothing behind.
class BundleWriter {
 public:
  explicit BundleWriter(std::string path);
  ~BundleWriter();  // removes an unfinished file
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Adds the bytes of an entry's file, unless the bundle has this entry already. Returns false if
  // they are not a sound entry, or if writing failed.
  bool add(std::span<const std::byte> entry);
  // Completes the bundle. Returns "", or the reason why there is no bundle. The umask decides who
  // may read it.
  std::string finish(std::string_view provenance);

  std::uint64_t entries() const { return records_.size(); }

 private:
  void write(std::span<const std::byte> bytes);

  std::string path_, temporary_;
  int descriptor_;
  bool named_;  // whether the temporary file has its name
  std::string failure_;
  std::uint64_t written_ = 0;
  std::vector<BundleRecord> records_;
  std::set<std::string> known_;
};

}  // namespace kiln::cache
