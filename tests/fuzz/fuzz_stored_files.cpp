// Files that Kiln reads and somebody else may have written: bundles, cache entries, use logs,
// tuning lines, manifests, device descriptions, programs that `kiln doctor` looks into. An input is
// a row of changes to a sound file, which may be sealed again afterwards: its checksums made right,
// so that what lies behind them is met.
//
// Whatever the file is by then, it is read or refused: no crash, none of more than 100 s, and never
// more memory than files of this size can need.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../support/elf_program.hpp"
#include "cache/bundle/bundle_format.hpp"
#include "cache/bundle/bytes.hpp"
#include "cache/entry_format.hpp"
#include "cache/store/disk_store.hpp"
#include "cache/store/use_log.hpp"
#include "cli/cache/bundle_file.hpp"
#include "cli/cache/manifest.hpp"
#include "cli/device/device_file.hpp"
#include "cli/doctor/cudnn_use.hpp"
#include "cli/files.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "plan/tuning.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace kiln;         // NOLINT(google-build-using-namespace)
using namespace kiln::cache;  // NOLINT(google-build-using-namespace)
using Bytes = std::vector<std::byte>;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Key key_of(int number) {
  return Key({{"source", "kernel " + std::to_string(number)}, {"architecture", "sm_90a"}},
             "compiler V13.0.88");
}
Entry entry_of(int number) {
  return {{{"binary", Bytes(100 + 40 * static_cast<std::size_t>(number), std::byte{7})},
           {"ptx", bytes_of(".version 9.0")},
           {"log", {}}}};
}

enum Kind { bundle, entry, use_log, tuning, manifest, device, program, kinds };
constexpr std::array<const char*, kinds> names = {
    "bundles", "entries", "use logs", "tunings", "manifests", "device files", "programs"};

// A folder with a file of each kind in it, and what of that was found sound.
struct Workplace {
  std::string folder;
  std::array<std::string, kinds> paths;
  std::array<Bytes, kinds> sound;
  std::array<long, kinds> tried{}, accepted{};
  DiskStore store;

  Workplace()
      : folder([] {
          std::string name = std::filesystem::temp_directory_path() / "kiln-fuzz-XXXXXX";
          require(mkdtemp(name.data()) != nullptr, "there is a temporary folder");
          return name;
        }()),
        store(folder + "/cache", nullptr) {
    for (int kind = 0; kind < kinds; ++kind) paths[kind] = folder + "/file" + std::to_string(kind);
    store.put(key_of(0), entry_of(0));
    paths[entry] = store.list().at(0).path;
    std::filesystem::create_directory(folder + "/log");
    paths[use_log] = folder + "/log/" + std::string(use_log_name);
    make_sound_files();
  }
  ~Workplace() {
    for (int kind = 0; kind < kinds; ++kind)
      std::printf("%ld %s, %ld of them accepted\n", tried[kind], names[kind], accepted[kind]);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%ld MiB of memory at most\n", usage.ru_maxrss >> 10);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  void write(Kind kind, const Bytes& content) const {
    const int file = ::open(paths[kind].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(file >= 0 && ::write(file, content.data(), content.size()) ==
                             static_cast<ssize_t>(content.size()),
            "the file is written");
    ::close(file);
  }

 private:
  void make_sound_files() {
    BundleWriter writer(paths[bundle]);
    nlohmann::ordered_json labels;
    for (int i = 0; i < 5; ++i) {
      writer.add(encode(key_of(i), entry_of(i)));
      labels[key_of(i).text()] = "sm_90a conv mb1_ic3ih9_oc4_kh3";
    }
    const std::string winner = tuning_line({"conv mb1_ic3ih9_oc4_kh3",
                                            "sm_90a, 132 multiprocessors, 232448 bytes",
                                            "0123456789abcdef",
                                            {"direct", "8x8", 1},
                                            12.5});
    writer.finish(cli::text_of_provenance(
        cli::make_provenance({"compiler V13.0.88"}, labels, {"sm_90a conv mb1"}, {winner})));
    const auto read = [](const std::string& path) { return bytes_of(cli::read_file(path)); };
    sound[bundle] = read(paths[bundle]);
    sound[entry] = read(paths[entry]);
    const std::string stem(32, 'a');
    sound[use_log] = bytes_of("used 1763712000 " + stem + "-0123456789abcdef\nused 1763712001 " +
                              stem + "-fedcba9876543210\ncounted 1763712000 disk=12 compiled=3\n");
    sound[tuning] = bytes_of(winner + "\n");
    sound[manifest] = bytes_of(
        "pool --dir bwd --dt f16 mb16ic64_ih112oh56_kh3_sh2_ph0\n"
        "{\"command\":\"conv\",\"problem\":\"--dt f16 mb1ic64ih56oc64kh3ph1\","
        "\"architecture\":\"sm_90a\",\"multiprocessors\":132,\"only_engine\":\"direct\"}\n"
        "{\"problem\":\"ic64ih56oc64kh3ph1\",\"dt\":[\"f32\",\"f16\"],\"layout\":\"nhwc\","
        "\"batch\":[1,8,32],\"architecture\":[\"sm_80\",\"sm_90a\"]}\n");
    sound[device] = bytes_of(cli::describe_as_json(known_architecture("h100")));
    sound[program] = bytes_of(kiln_test::ElfProgram{.called = {"cudnnCreate", "cudnnRNNForward"},
                                                    .carried = {"cudnnMine"},
                                                    .texts = {"a text", "cudnnDestroy"},
                                                    .libraries = {"libc.so.6", "libcudnn.so.9"}}
                                  .bytes());
  }
};

Workplace& workplace() {
  static Workplace instance;
  return instance;
}

// ---- changing a file ---------------------------------------------------------------------------

class Changes {
 public:
  Changes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  std::size_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  void apply(Bytes& file) {
    for (int i = 0; i < 16 && left_ > 0; ++i) change(file);
  }

 private:
  std::size_t place(const Bytes& file) { return (byte() << 8 | byte()) % (file.size() + 1); }

  static void insert(Bytes& file, std::size_t at, const Bytes& piece) {
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
  }

  void change(Bytes& file) {
    static const std::vector<std::string> pieces = {"[",
                                                    "]",
                                                    "{",
                                                    "}",
                                                    "\"",
                                                    ":",
                                                    ",",
                                                    "\n",
                                                    "\\u0000",
                                                    "\xff",
                                                    "-1",
                                                    "1e999",
                                                    "null",
                                                    "true",
                                                    "18446744073709551616",
                                                    "9223372036854775807",
                                                    "{\"problem\":",
                                                    "mb999999999999",
                                                    "\x1b[31m",
                                                    "../",
                                                    std::string(100000, '['),
                                                    std::string(100000, ' '),
                                                    "\"tuning\":[0]",
                                                    "--dt f64 "};
    constexpr std::uint64_t numbers[] = {0,
                                         1,
                                         23,
                                         63,
                                         4095,
                                         4096,
                                         1u << 20,
                                         1u << 31,
                                         std::uint64_t{6} << 30,
                                         std::uint64_t{1} << 40,
                                         ~std::uint64_t{0} >> 1,
                                         ~std::uint64_t{0}};
    const std::size_t what = byte(), at = place(file);
    switch (what % 8) {
      case 0:
      case 1:
        if (at < file.size()) file[at] = static_cast<std::byte>(byte());
        break;
      case 2:  // a number where numbers lie
      case 3: {
        ByteWriter number;
        number.integer(numbers[byte() % std::size(numbers)] + byte() % 3 - 1);
        const std::size_t start = what % 16 < 8 ? at / 8 * 8 : at;
        if (start + 8 <= file.size())
          std::ranges::copy(number.bytes(), file.begin() + static_cast<std::ptrdiff_t>(start));
        break;
      }
      case 4: file.resize(at); break;
      case 5: {
        const std::size_t end = std::min(file.size(), at + byte());
        file.erase(file.begin() + static_cast<std::ptrdiff_t>(at),
                   file.begin() + static_cast<std::ptrdiff_t>(end));
        break;
      }
      case 6: {  // a piece of it once more
        const std::size_t from = place(file), end = std::min(file.size(), from + 4 * byte());
        insert(file, at,
               Bytes(file.begin() + static_cast<std::ptrdiff_t>(from),
                     file.begin() + static_cast<std::ptrdiff_t>(end)));
        break;
      }
      default: insert(file, at, bytes_of(pieces[byte() % pieces.size()]));
    }
  }

  const std::uint8_t* data_;
  std::size_t left_;
};

void put(Bytes& file, std::size_t at, std::span<const std::byte> bytes) {
  if (at <= file.size() && bytes.size() <= file.size() - at)
    std::ranges::copy(bytes, file.begin() + static_cast<std::ptrdiff_t>(at));
}

void seal_entry(Bytes& file, bool right_size) {
  if (file.size() < 40) return;
  ByteWriter size;
  size.integer(file.size());
  if (right_size) put(file, 16, size.bytes());
  put(file, file.size() - sizeof(Digest),
      hash128(std::span(file).first(file.size() - sizeof(Digest))));
}

void seal_bundle(Bytes& file, bool right_size) {
  if (file.size() < bundle_trailer_bytes) return;
  const std::size_t trailer = file.size() - bundle_trailer_bytes;
  ByteWriter size;
  size.integer(file.size());
  if (right_size) put(file, trailer + 8, size.bytes());
  ByteReader layout(std::span<const std::byte>(file).subspan(trailer + 16));
  layout.integer();
  const std::uint64_t index = layout.integer(), pages = layout.integer();
  const std::uint64_t provenance = layout.integer(), provenance_size = layout.integer();
  for (std::uint64_t page = 0; page < pages && index <= file.size(); ++page) {
    const std::uint64_t at = index + page * bundle_page_bytes;
    if (at > file.size() || file.size() - at < bundle_page_bytes) break;
    const std::size_t hashed = bundle_page_bytes - sizeof(Digest);
    ByteWriter content;
    content.raw(std::span(file).subspan(at, hashed));
    content.integer(page);
    put(file, at + hashed, hash128(content.bytes()));
  }
  if (provenance <= file.size() && provenance_size <= file.size() - provenance)
    put(file, trailer + 56, hash128(std::span(file).subspan(provenance, provenance_size)));
  const std::size_t sealed = bundle_trailer_bytes - sizeof(Digest) - 8;
  put(file, trailer + sealed, hash128(std::span(file).subspan(trailer, sealed)));
}

// ---- reading it --------------------------------------------------------------------------------

bool read_bundle(const std::string& path) {
  std::string why, flaw;
  const auto opened = Bundle::open(path, why);
  require((opened == nullptr) != why.empty(), "what is refused has a reason");
  if (!opened) return false;
  for (int i = 0; i < 6; ++i) {
    opened->get(key_of(i));
    opened->get(Key(key_of(i).content(), ""));
  }
  for (const BundleRecord& record : opened->records(flaw)) decode(opened->entry(record));
  const auto provenance = cli::provenance_of(*opened);
  require(provenance.is_object(), "a provenance is an object");
  const nlohmann::ordered_json copy = provenance;
  cli::printable(cli::label_of(copy, key_of(0).text()));
  cli::text_of_provenance(copy);
  return flaw.empty();
}

bool read(Kind kind) {
  Workplace& place = workplace();
  const std::string& path = place.paths[kind];
  try {
    switch (kind) {
      case bundle: return read_bundle(path);
      case entry: {
        const bool hit = place.store.get(key_of(0)).entry.has_value();
        place.store.get(Key(key_of(0).content(), ""));
        std::vector<Field> content;
        std::string producer;
        for (const Listing& listing : place.store.list())
          place.store.read(listing, &content, &producer);
        return hit;
      }
      case use_log: return !read_uses(place.folder + "/log").last.empty();
      case tuning: {
        std::string line = cli::read_file(path);
        line = line.substr(0, line.find('\n'));
        return parse_tuning_line(line).has_value();
      }
      case manifest: {
        const auto read = cli::read_manifest(path, {});
        for (const std::string& flaw : read.flaws) cli::printable_lines(flaw);
        return read.flaws.empty();
      }
      case device: cli::read_device_file(path); return true;
      case program: return !cli::cudnn_use_of(path).called.empty();
      case kinds: break;
    }
  } catch (const Error& error) {
    require(std::strlen(error.what()) > 10, "what is refused has a reason");
  } catch (const cli::UsageError& error) {
    require(std::strlen(error.what()) > 10, "what is refused has a reason");
  }
  return false;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Workplace& place = workplace();
  Changes changes(data, size);
  const auto kind = static_cast<Kind>(changes.byte() % kinds);
  const std::size_t seal = changes.byte();
  Bytes file = place.sound[kind];
  changes.apply(file);
  if (kind == bundle && seal % 8 != 0) seal_bundle(file, seal % 2 != 0);
  if (kind == entry && seal % 8 != 0) seal_entry(file, seal % 2 != 0);
  place.write(kind, file);
  alarm(100);  // what takes longer has hung, however busy the machine is
  place.accepted[kind] += read(kind);
  alarm(0);
  ++place.tried[kind];
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  require(usage.ru_maxrss < 1 << 20, "less than 1 GiB of memory is used");  // in KiB
  return 0;
}
