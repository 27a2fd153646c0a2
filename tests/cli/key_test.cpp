// A kernel's key depends on everything that decides its code, and on nothing else. Tested by the
// key that `kiln inspect` prints, so neither GPU nor NVRTC is needed.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "compile/run_program.hpp"
#include "run_kiln.hpp"
#include "support/counts.hpp"

using kiln_test::Kiln;

namespace {

namespace fs = std::filesystem;

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1";

// A library of nothing but a build id, which is all that a key needs of NVRTC.
void build_nvrtc(const fs::path& folder, const std::string& id, const std::string& builtins_id,
                 const std::string& name = "libnvrtc.so.13",
                 const std::string& builtins = "libnvrtc-builtins.so.13.0") {
  fs::create_directories(folder);
  for (const auto& [file, build] : {std::pair{name, id}, std::pair{builtins, builtins_id}}) {
    const kiln::ProgramResult result =
        kiln::run_program({kiln::find_program(KILN_TEST_CXX), "-shared", "-o", folder / file,
                           "-Wl,--build-id=0x" + build, "-x", "c++", "/dev/null"});
    BOOST_REQUIRE_MESSAGE(result.succeeded, result.output);
  }
}

struct Fixture {
  Kiln kiln;
  std::string nvrtc = kiln.directory / "toolkit/libnvrtc.so.13";

  Fixture() {
    build_nvrtc(kiln.directory / "toolkit", "00d5", "b001");
    kiln.environment["KILN_NVRTC"] = nvrtc;
    kiln.environment["HOME"] = kiln.directory / "home";
  }

  std::string inspect(const std::string& stage, const std::vector<std::string>& more) const {
    std::vector<std::string> command{"inspect", tiny, "--emit", stage};
    command.insert(command.end(), more.begin(), more.end());
    const kiln_test::Finished finished = kiln(command);
    BOOST_REQUIRE_MESSAGE(finished.status == 0, finished.err);
    return finished.out;
  }

  // "content-producer"
  std::string key(const std::vector<std::string>& more = {"--arch", "sm_90a"}) const {
    const std::string spec = inspect("spec", more), label = "\nkey            ";
    const std::size_t at = spec.find(label);
    BOOST_REQUIRE(at != std::string::npos);
    return spec.substr(at + label.size(), spec.find('\n', at + 1) - at - label.size());
  }
};

std::string content(const std::string& key) { return key.substr(0, 32); }
std::string producer(const std::string& key) { return key.substr(32); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(key, Fixture)

// Changes one byte of each kernel file in the text; in a full run one in every 97 bytes outside of
// directives.
BOOST_AUTO_TEST_CASE(each_included_kernel_file_counts) {
  for (const std::string arch : {"sm_90a", "host"}) {
    const std::string before = key({"--arch", arch});
    std::set<std::string> seen = {before};
    std::size_t changes = 1;
    std::istringstream source(inspect("source", {"--arch", arch}));
    for (std::string line; std::getline(source, line);) {
      const std::string file = line.substr(std::min<std::size_t>(line.size(), 8));
      if (line != "// ---- " + file || !fs::exists(KILN_KERNEL_SOURCES "/" + file)) continue;
      const std::string text = kiln_test::read(KILN_KERNEL_SOURCES "/" + file);
      BOOST_REQUIRE(!text.empty());
      const std::string folder = kiln.directory / ("edited" + std::to_string(changes));
      fs::create_directories(fs::path(folder + "/" + file).parent_path());
      kiln.environment["KILN_KERNEL_SOURCE_DIR"] = folder;
      const std::size_t step = kiln_test::full_counts() ? 97 : text.size();
      for (std::size_t i = text.size() / 2 % step; i < text.size(); i += step) {
        const std::size_t begin = text.rfind('\n', i) + 1;
        if (text[begin] == '#' || text[i] == '\n') continue;
        std::string changed = text;
        changed[i] = changed[i] == ' ' ? '_' : ' ';
        kiln.directory.write(folder.substr((kiln.directory / "").size()) + "/" + file, changed);
        seen.insert(key({"--arch", arch}));
        ++changes;
      }
      kiln.environment.erase("KILN_KERNEL_SOURCE_DIR");
    }
    BOOST_TEST(changes > 5u);
    BOOST_TEST(seen.size() == changes);
    BOOST_TEST(key({"--arch", arch}) == before);
    kiln_test::report(std::to_string(changes - 1) + " changed bytes of kernel files, " + arch);
  }
}

// The build, not the release: 13.0.48 and 13.0.88 answer nvrtcVersion alike.
BOOST_AUTO_TEST_CASE(the_exact_build_of_nvrtc_counts) {
  const std::string before = key();
  build_nvrtc(kiln.directory / "patched", "00d6", "b001");
  kiln.environment["KILN_NVRTC"] = kiln.directory / "patched/libnvrtc.so.13";
  const std::string patched = key();
  build_nvrtc(kiln.directory / "builtins", "00d5", "b002");
  kiln.environment["KILN_NVRTC"] = kiln.directory / "builtins/libnvrtc.so.13";
  const std::string builtins = key();
  BOOST_TEST(content(patched) == content(before));
  BOOST_TEST(producer(patched) != producer(before));
  BOOST_TEST(producer(builtins) != producer(before));
  BOOST_TEST(producer(builtins) != producer(patched));
  kiln.environment["KILN_NVRTC"] = "/dev/null/libnvrtc.so";
  BOOST_TEST(key() == content(before));  // any producer's
}

BOOST_AUTO_TEST_CASE(the_exact_build_of_the_host_compiler_counts) {
  const auto with_version = [&](const std::string& version) {
    const std::string path =
        kiln.directory.write("cxx", "#!/bin/sh\ncase $1 in --version) echo 'g++ (Debian) " +
                                        version + "';; *) echo x86_64-linux-gnu;; esac\n");
    BOOST_REQUIRE(chmod(path.c_str(), 0700) == 0);
    kiln.environment["KILN_HOST_CXX"] = path;
    return key({"--arch", "host"});
  };
  const std::string before = with_version("12.2.0"), after = with_version("12.2.1");
  BOOST_TEST(content(before) == content(after));
  BOOST_TEST(producer(before) != producer(after));
}

BOOST_AUTO_TEST_CASE(options_and_architecture_count) {
  std::set<std::string> seen;
  for (const char* arch :
       {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120", "host"})
    seen.insert(content(key({"--arch", arch})));
  seen.insert(content(key({"--arch", "sm_90a", "--lineinfo"})));
  BOOST_TEST(seen.size() == 9u);
  kiln.environment["KILN_HOST_OPTIMIZATION"] = "g";
  seen.insert(content(key({"--arch", "host"})));
  BOOST_TEST(seen.size() == 10u);
  BOOST_TEST(seen.contains(content(key({"--arch", "sm_90a"}))));  // it is the host compiler's alone
  kiln.environment["KILN_HOST_OPTIMIZATION"] = "1";
  BOOST_TEST(seen.contains(content(key({"--arch", "host"}))));
}

BOOST_AUTO_TEST_CASE(neither_place_nor_time_nor_language_counts) {
  const std::string cuda = key(), host = key({"--arch", "host"});
  const auto same = [&](const std::string& what) {
    BOOST_TEST_CONTEXT(what) {
      BOOST_TEST(key() == cuda);
      BOOST_TEST(key({"--arch", "host"}) == host);
    }
  };
  const auto variables = kiln.environment;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"HOME", "/elsewhere"},
           {"USER", "somebody"},
           {"LC_ALL", "de_DE.UTF-8"},
           {"LANG", "tr_TR.UTF-8"},
           {"TZ", "Asia/Kathmandu"},
           {"TMPDIR", kiln.directory / "temporary"},
           {"XDG_CACHE_HOME", "/elsewhere"},
           {"KILN_CACHE_DIR", kiln.directory / "other-cache"},
           {"KILN_DUMP_DIR", kiln.directory / "dump"},
           {"KILN_LOG", "off"},
           {"CUDA_HOME", "/elsewhere"},
           {"CUDA_VISIBLE_DEVICES", "7"},
           {"LD_LIBRARY_PATH", kiln.directory / "toolkit"},
       }) {
    fs::create_directories(kiln.directory / "temporary");
    kiln.environment[name] = value;
    same(name);
    kiln.environment = variables;
  }
  kiln.environment["LD_PRELOAD"] = KILN_FAILING_CALLS;
  for (const char* seconds : {"-1000000000", "40000000"}) {
    kiln.environment["KILN_FAULT_CLOCK"] = seconds;
    same("the clock is off by " + std::string(seconds));
  }
  kiln.environment = variables;
}

BOOST_AUTO_TEST_CASE(the_place_of_the_program_and_of_the_compilers_does_not_count) {
  const std::string cuda = key(), host = key({"--arch", "host"});
  // Installed elsewhere, and an hour older.
  fs::create_directories(kiln.directory / "opt/bin");
  kiln.program = kiln.directory / "opt/bin/kiln-next";
  fs::copy_file(KILN_PROGRAM, kiln.program);
  const auto hour_ago = fs::last_write_time(kiln.program) - std::chrono::hours(1);
  fs::last_write_time(kiln.program, hour_ago);
  fs::create_directories(kiln.directory / "opt");
  fs::copy(kiln.directory / "toolkit", kiln.directory / "opt/cuda");
  for (const auto& file : fs::directory_iterator(kiln.directory / "opt/cuda"))
    fs::last_write_time(file, hour_ago);
  kiln.environment["KILN_NVRTC"] = kiln.directory / "opt/cuda/libnvrtc.so.13";
  BOOST_TEST(key() == cuda);

  // As packages lay it out: the whole version in the file's name, and links; and with another
  // release's builtins in the same folder.
  const fs::path packaged = kiln.directory / "packaged";
  build_nvrtc(packaged, "00d5", "b001", "libnvrtc.so.13.0.88", "libnvrtc-builtins.so.13.0.88");
  build_nvrtc(packaged, "0c80", "b0c8", "libnvrtc.so.12.8.93", "libnvrtc-builtins.so.12.8.93");
  build_nvrtc(packaged, "0d10", "b0d1", "libnvrtc.so.13.1.10", "libnvrtc-builtins.so.13.1.10");
  fs::create_symlink("libnvrtc.so.13.0.88", packaged / "libnvrtc.so.13");
  fs::create_symlink("libnvrtc.so.13", packaged / "libnvrtc.so");
  fs::create_symlink("libnvrtc-builtins.so.13.0.88", packaged / "libnvrtc-builtins.so.13.0");
  for (const char* name : {"libnvrtc.so.13.0.88", "libnvrtc.so.13", "libnvrtc.so"}) {
    kiln.environment["KILN_NVRTC"] = packaged / name;
    BOOST_TEST(key() == cuda, name);
  }

  // The same C++ compiler by other names.
  fs::create_directories(kiln.directory / "bin");
  for (const char* name : {"c++", "x86_64-linux-gnu-c++-next"}) {
    fs::create_symlink(kiln::find_program(KILN_TEST_CXX),
                       kiln.directory / ("bin/" + std::string(name)));
    kiln.environment["KILN_HOST_CXX"] = kiln.directory / ("bin/" + std::string(name));
    BOOST_TEST(key({"--arch", "host"}) == host, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
