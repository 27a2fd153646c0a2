// A bundle: many entries in one read-only file, for machines that are to find kernels and not to
// make them.
//
//   header       64 bytes: magic "KILNBNDL", version, zeros
//   entries      each as its own file would be (entry_format.hpp), back to back
//   provenance   text (JSON) of whoever made the bundle
//   index        a hash table in pages of 4 KiB, each with a checksum: content hash, producer hash,
//                offset, size
//   trailer      128 bytes: where all that lies, the file's size, checksums, magic "KILNDONE"
//
// The trailer is the mark of completeness: a file without one, or of another size than it says, is
// no bundle. Opening reads the last 64 KiB at most, however large the bundle; the index of a small
// one is among them. Nothing is mapped, and no descriptor is kept: a lookup that misses costs no
// system call once its page is known, one that hits costs open, fstat, pread and close.
//
// A bundle is machine code that will be executed, so it is trusted like a shared library: it is
// taken from the effective user and from root, and from nobody whom everybody may write for. No
// size that it states is believed beyond what the file has and any bundle needs.
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

// Where the parts of a bundle lie.
struct BundleLayout {
  std::uint64_t file_bytes = 0, entries = 0, index_at = 0, pages = 0, provenance_at = 0,
                provenance_bytes = 0;
  Digest provenance_digest{};
};

struct BundleRecord {
  std::string content_hash, producer_hash;  // hex
  std::uint64_t offset = 0, bytes = 0;
};

// Safe to use from any number of threads at once, across fork() too. A file that is replaced while
// it is open here (by rename) is examined again and noticed as misses: whoever wants the new one
// opens it anew.
class Bundle {
 public:
  // Null, and a sentence's end in `why` ("is not complete"), if there is no sound bundle: no
  // regular file, one that everybody may write to, one without its trailer, one of an owner other
  // than the effective user, root and `trusted`: -1 for nobody else.
  static std::unique_ptr<const Bundle> open(const std::string& path, std::string& why,
                                            uid_t trusted = nobody_else);
  static constexpr uid_t nobody_else = static_cast<uid_t>(-1);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t entries() const { return layout_.entries; }
  std::uint64_t bytes() const { return layout_.file_bytes; }

  // The full key is compared. A key of any producer finds any entry of its content. `other`, if not
  // null, is set where an entry of this content is there, but of another producer. Throws
  // std::bad_alloc.
  Lookup get(const Key& key, bool* other = nullptr) const;

  // For looking at a bundle, each with the file opened anew. `flaw` is "" if all is well. Never
  // more records than the file has room for.
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
  // Read when first needed and then kept; whoever comes second keeps the first one's.
  std::unique_ptr<std::atomic<const Page*>[]> pages_;
};

// Writes a bundle: a private file that appears under its name when it is complete.
class BundleWriter {
 public:
  explicit BundleWriter(std::string path);
  ~BundleWriter();  // what was not finished is removed
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // The bytes of an entry's file; one that is already there is passed over. False if they are no
  // sound entry, or if writing failed.
  bool add(std::span<const std::byte> entry);
  // "" or why there is no bundle. Readable by everybody whom the umask allows.
  std::string finish(std::string_view provenance);

  std::uint64_t entries() const { return records_.size(); }

 private:
  void write(std::span<const std::byte> bytes);

  std::string path_, temporary_;
  int descriptor_;
  std::string failure_;
  std::uint64_t written_ = 0;
  std::vector<BundleRecord> records_;
  std::set<std::string> known_;
};

}  // namespace kiln::cache
