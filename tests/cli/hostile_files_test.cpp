// The whole program with malicious files, and with places that cannot be written to.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cache/bundle/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cli/cache/bundle_file.hpp"
#include "cli/cache/entries.hpp"
#include "cli/device/device_options.hpp"
#include "cli/printable.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "run_kiln.hpp"

using kiln_test::Finished;
namespace fs = std::filesystem;
namespace cache = kiln::cache;

namespace {

constexpr const char* conv = "mb2_ic3ih6_oc4_kh3ph1";

struct Fixture {
  kiln_test::Kiln kiln;

  // Runs the program under a shell's `ulimit`.
  void limit(const std::string& limits) {
    const std::string script = kiln.directory.write(
        "limited", "#!/bin/sh\nulimit " + limits + "\nexec " KILN_PROGRAM " \"$@\"\n");
    fs::permissions(script, fs::perms::owner_all);
    kiln.program = script;
  }

  std::string write_bundle(const std::string& name, const std::string& architecture,
                           const std::string& provenance) const {
    const std::string path = kiln.directory / name;
    cache::BundleWriter writer(path);
    const std::byte code[] = {std::byte{1}, std::byte{2}};
    writer.add(cache::encode(
        cache::Key({{"source", "a kernel"}, {"architecture", architecture}}, "compiler \x1b[2J"),
        {{{"binary", {std::begin(code), std::end(code)}}}}));
    BOOST_REQUIRE(writer.finish(provenance) == "");
    return path;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hostile_files, Fixture)

BOOST_AUTO_TEST_CASE(json_has_a_depth) {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  BOOST_TEST(kiln::parse_json(nested(kiln::most_json_levels)).is_array());
  BOOST_TEST(kiln::parse_json(nested(kiln::most_json_levels + 1)).is_discarded());
  BOOST_TEST(kiln::parse_json("{\"a\":[{}]}").is_object());
  BOOST_TEST(kiln::parse_json("\"" + nested(1000) + "\"").is_string());
  BOOST_TEST(kiln::parse_json("{").is_discarded());

  const std::string deep = "{\"tuning\":[" + nested(200'000) + "],\"library\":\"1\"}";
  const std::string bundle = write_bundle("deep.bundle", "sm_90a", deep);
  const Finished listed = kiln({"bundle", "ls", bundle});
  BOOST_TEST(listed.status == 0, listed.err);
  BOOST_TEST(has(listed.out, "kernels    1"), listed.out);
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  const Finished inspected = kiln({"inspect", conv});  // asks the bundle for winners
  BOOST_TEST(inspected.status == 0, inspected.err);

  const std::string object = "{\"problem\":\"ic3ih9oc4kh3\",\"batch\":" + nested(200'000) + "}";
  const Finished prewarmed =
      kiln({"prewarm", kiln.directory.write("manifest", object + "\n"), "--arch", "sm_90a"});
  BOOST_TEST(prewarmed.status == 1, prewarmed.err);
  BOOST_TEST(has(prewarmed.out, "no JSON object"), prewarmed.out.substr(0, 300));
  const Finished described =
      kiln({"prewarm", kiln.directory.write("empty", "\n"), "--device",
            kiln.directory.write("device", "{\"name\":" + nested(200'000) + "}")});
  BOOST_TEST(described.status == 2);
  BOOST_TEST(has(described.err, "is no JSON object"), described.err);
}

// A file of 4 KB that claims 6 GB is refused at once by a program that may have 2 GB.
BOOST_AUTO_TEST_CASE(a_bundle_that_claims_what_it_has_not) {
  const std::string bundle = write_bundle("huge.bundle", "sm_90a", "{}");
  std::string file = kiln_test::read(bundle);
  cache::BundleLayout layout;
  const auto bytes = std::as_bytes(std::span(file));
  BOOST_REQUIRE(
      cache::decode_trailer(bytes.last(cache::bundle_trailer_bytes), file.size(), layout));
  std::vector<cache::BundleRecord> records;
  BOOST_REQUIRE(
      cache::decode_page(bytes.subspan(layout.index_at, cache::bundle_page_bytes), 0, records));
  records.at(0).bytes = std::uint64_t{6} << 30;
  const auto page = cache::encode_index(records, 1);
  file.replace(layout.index_at, page.size(), reinterpret_cast<const char*>(page.data()),
               page.size());
  kiln.directory.write("huge.bundle", file);
#ifndef __SANITIZE_ADDRESS__
  limit("-v 2000000");
#endif
  const auto begin = std::chrono::steady_clock::now();
  const Finished verified = kiln({"bundle", "verify", bundle});
  BOOST_TEST(verified.status == 1);
  BOOST_TEST(has(verified.out, "page 0 of the index is damaged"), verified.out + verified.err);
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  const Finished ran = kiln({"conv", "--device", "host", "--check", conv});
  BOOST_TEST(ran.status == 0, ran.err);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  BOOST_TEST(took.count() < 25);
}

BOOST_AUTO_TEST_CASE(control_characters_stay_off_the_terminal) {
  using kiln::cli::printable;
  BOOST_TEST(printable("plain, gr\xc3\xbc\xc3\x9f, \xe2\x82\xac, \xf0\x9f\x98\x80") ==
             "plain, gr\xc3\xbc\xc3\x9f, \xe2\x82\xac, \xf0\x9f\x98\x80");
  BOOST_TEST(printable("\x1b[31m\x07\n\t\x7f") == "\\x1b[31m\\x07\\x0a\\x09\\x7f");
  BOOST_TEST(printable("\xc2\x9b"
                       "1m \x9b \xc0\x80 \xed\xa0\x80 \xf5 \xe2\x82") ==
             "\\xc2\\x9b1m \\x9b \\xc0\\x80 \\xed\\xa0\\x80 \\xf5 \\xe2\\x82");
  BOOST_TEST(kiln::cli::printable_lines("a\tb\n\x1b") == "a\tb\n\\x1b");

  const std::string escape = "\\u001b]0;owned\\u0007";
  std::string key;
  const std::string provenance = R"({"library":")" + escape + R"(","compilers":[")" + escape +
                                 R"("],"kernels":{"KEY":")" + escape + R"("},"manifest":[]})";
  const std::string first = write_bundle("first.bundle", "sm_\x1b[2J", provenance);
  for (const cache::BundleRecord& record : kiln::cli::open_bundle(first)->records(key))
    key = record.content_hash + "-" + record.producer_hash;
  std::string named = provenance;
  named.replace(named.find("KEY"), 3, key);
  const std::string bundle = write_bundle("escape.bundle", "sm_\x1b[2J", named);
  const std::string other = write_bundle("other.bundle", "sm_80", "{}");
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"bundle", "ls", bundle},
           {"bundle", "diff", bundle, other},
           {"bundle", "verify", bundle},
           {"bundle", "extract", bundle, "-o", kiln.directory / "x"},
           {"cache", "why", conv},
           {"prewarm", bundle, "--arch", "sm_90a"}}) {
    const Finished finished = kiln(command);
    BOOST_TEST_CONTEXT(command[0] << " " << command[1]) {
      BOOST_TEST(finished.status >= 0);
      BOOST_TEST(!has(finished.out + finished.err, "\x1b"));
      BOOST_TEST(!has(finished.out + finished.err, "\x07"));
    }
  }
  BOOST_TEST(has(kiln({"bundle", "ls", bundle}).out, "\\x1b]0;owned\\x07"));
}

BOOST_AUTO_TEST_CASE(an_architecture_is_no_path) {
  for (const char* good : {"host", "sm_80", "sm_90a", "sm_1000"})
    BOOST_TEST(kiln::cli::is_architecture_name(good), good);
  for (const char* bad :
       {"", "?", "sm_", "sm_90aa", "sm_90/", "../x", "sm_12345", "hosts", "sm_9A"})
    BOOST_TEST(!kiln::cli::is_architecture_name(bad), bad);
  const std::string bundle = write_bundle("path.bundle", "/../../outside", "{}");
  const Finished extracted = kiln({"bundle", "extract", bundle, "-o", kiln.directory / "in/side"});
  BOOST_TEST(extracted.status == 1);
  BOOST_TEST(has(extracted.err, "the architecture of "), extracted.err);
  BOOST_TEST(has(extracted.err, " is /../../outside; expected host, or sm_"), extracted.err);
  BOOST_TEST(!fs::exists(kiln.directory / "in"));
  BOOST_TEST(!fs::exists(kiln.directory / "outside.cubin"));
}

BOOST_AUTO_TEST_CASE(a_log_file_never_waits) {
  const std::string fifo = kiln.directory / "fifo";
  BOOST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  kiln.environment["KILN_LOG"] = "info";
  kiln.environment["KILN_LOG_FILE"] = fifo;
  const Finished unread = kiln({"conv", "--device", "host", conv});
  BOOST_TEST(unread.status == 0);
  BOOST_TEST(has(unread.err, "KILN_LOG_FILE is " + fifo), unread.err);
  BOOST_TEST(has(unread.err, "FIFO that nobody reads"), unread.err);

  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  BOOST_TEST(kiln({"conv", "--device", "host", conv}).err == "");
  char text[8192];
  const ssize_t size = read(reader, text, sizeof text);
  close(reader);
  BOOST_REQUIRE(size > 0);
  BOOST_TEST(has(std::string(text, static_cast<std::size_t>(size)), "conv"));

  kiln.environment["KILN_LOG_FILE"] = "/dev/full";
  BOOST_TEST(kiln({"conv", "--device", "host", conv}).status == 0);
  const std::string file = kiln.directory / "made/on/the/way/log";
  kiln.environment["KILN_LOG_FILE"] = file;
  BOOST_TEST(kiln({"conv", "--device", "host", conv}).err == "");
  BOOST_TEST(has(kiln_test::read(file), "conv"));
}

BOOST_AUTO_TEST_CASE(includes_of_edited_kernels) {
  const std::string folder = kiln.directory / "sources";
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = folder;
  fs::create_directories(folder + "/conv/direct");
  const std::string first = "sources/conv/direct/direct.cu";
  const auto inspect = [&] {
    return kiln({"inspect", "--engine", "direct", "--emit", "source", conv});
  };
  for (const std::string& out : {kiln.directory.write("secret", "secret"), std::string("../secret"),
                                 std::string("conv/../../secret"), std::string("..")}) {
    kiln.directory.write(first, "#include \"" + out + "\"\n");
    const Finished finished = inspect();
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(has(finished.err, "a kernel includes " + out + "; expected a path below"),
               finished.err);
    BOOST_TEST(!has(finished.out, "secret"));
  }
  kiln.directory.write(first, "#include \"0.cuh\"\n");
  constexpr int depth = 20'000;
  for (int i = 0; i < depth; ++i)
    kiln.directory.write("sources/" + std::to_string(i) + ".cuh",
                         "#include \"" + std::to_string(i + 1) + ".cuh\"\n");
  const Finished deep = inspect();
  BOOST_TEST(deep.status == 2);
  BOOST_TEST(has(deep.err, "include one another more than 200 deep"), deep.err);
  kiln.directory.write("sources/150.cuh", "#include \"0.cuh\"\n// the last\n");  // a ring is none
  BOOST_TEST(has(inspect().out, "// the last"));
}

// Winners that cannot be stored.
BOOST_AUTO_TEST_CASE(tune_tells_where_winners_are_only_if_there_are_any) {
  fs::create_directories(kiln.directory / "cache/tuning");  // where the file should be
  fs::permissions(kiln.directory / "cache", fs::perms::owner_all);
  const std::vector<std::string> command = {
      "tune", "--device", "host", "--samples", "1", "--warm-up", "0", "conv mb1_ic8ih6_oc8_kh3ph1"};
  const Finished failed = kiln(command);
  BOOST_TEST(failed.status == 1);
  BOOST_TEST(has(failed.out, "winners cannot be kept in "), failed.out);
  BOOST_TEST(has(failed.out, "1 failed; no winner is kept"), failed.out);
  BOOST_TEST(!has(failed.out, "winners are in"));
  fs::remove(kiln.directory / "cache/tuning");
  const Finished kept = kiln(command);
  BOOST_TEST(has(kept.out, "0 failed; 1 winners are in " + (kiln.directory / "cache/tuning")),
             kept.out);
}

// With a file-size limit above the compiler's output but below the cache's entry, the program works
// in memory, gives the right result, warns once, and leaves nothing behind.
BOOST_AUTO_TEST_CASE(a_file_size_limit_ends_nobody) {
  const std::vector<std::string> command = {"conv", "--device", "host", "--check", conv};
  BOOST_REQUIRE(kiln(command).status == 0);
  std::uintmax_t entry = 0;
  for (const auto& file : fs::recursive_directory_iterator(kiln.directory / "cache"))
    if (file.path().extension() == ".kiln") entry = fs::file_size(file);
  BOOST_REQUIRE(entry > 4096u);
  fs::remove_all(kiln.directory / "cache");
  const std::string compiler = kiln.directory.write(
      "cxx", "#!/bin/sh\nulimit -S -f unlimited\nexec " KILN_TEST_CXX " \"$@\"\n");
  fs::permissions(compiler, fs::perms::owner_all);
  kiln.environment["KILN_HOST_CXX"] = compiler;
  limit("-S -f " + std::to_string((entry - 1) / 512));  // in blocks of 512 bytes
  for (const char* log_file : {"", "log"}) {
    if (*log_file) kiln.environment["KILN_LOG_FILE"] = kiln.directory / log_file;
    const Finished limited = kiln(command);
    BOOST_TEST(limited.status == 0, limited.out + limited.err);
    BOOST_TEST(limited.out.starts_with("PASSED"), limited.out);
    const std::string log = *log_file ? kiln_test::read(kiln.directory / log_file) : limited.err;
    const std::size_t said = log.find("cannot be written: File too large");
    BOOST_TEST(said != std::string::npos, log);
    BOOST_TEST(log.find("cannot be written", said + 1) == std::string::npos, log);
    for (const auto& file : fs::recursive_directory_iterator(kiln.directory / "cache"))
      BOOST_TEST((file.is_directory() || file.path().filename() == "size" ||
                  file.path().filename() == "uses"),
                 file.path());
  }
}

BOOST_AUTO_TEST_SUITE_END()
