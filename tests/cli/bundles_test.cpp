// Kernels from bundles: beside the program, damaged, from another compiler, and with no compiler at
// all.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "cache/bundle/bundle.hpp"
#include "counted_compiler.hpp"

using kiln_test::compilations;
using kiln_test::contains;
using kiln_test::count_compilations;
using kiln_test::count_of;
using kiln_test::Finished;
using kiln_test::Kiln;
using kiln_test::wrap_compiler;

namespace {

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1";
const std::string problems =
    "ic3ih6oc4kh3ph1\npool ic4ih8kh2sh2ph0\nact --act relu 2x3x4x4\nsoftmax 2x8x3x3\n"
    "tensor --op add 2x4x3x3:1x4x1x1:2x4x3x3\n";

void take_compilers_away(Kiln& kiln) {
  kiln.environment["KILN_HOST_CXX"] = "/dev/null/c++";
  kiln.environment["KILN_NVRTC"] = "/dev/null/libnvrtc.so";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bundles)

// kiln.bundle beside the library, or beside a program that is linked with it statically, needs no
// environment variable.
BOOST_AUTO_TEST_CASE(a_bundle_beside_the_program) {
  Kiln kiln;
  const std::string folder = kiln.directory / "bin";
  std::filesystem::create_directory(folder);
  const std::string file = kiln.directory.write("problems", tiny + "\n");
  BOOST_REQUIRE(
      kiln({"prewarm", file, "--arch", "host", "--bundle", folder + "/kiln.bundle"}).status == 0);
  std::filesystem::copy(kiln.program, folder + "/kiln");
  kiln.program = folder + "/kiln";
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  BOOST_TEST(contains(kiln({"conv", "--device", "host", "--check", tiny}).out, "  bundle "));
  BOOST_TEST(contains(kiln({"info"}).out, folder + "/kiln.bundle, 1 kernels"));
}

// If a bundle's kernel cannot be loaded, the next layers are searched, and it is compiled only
// once.
BOOST_AUTO_TEST_CASE(a_bundle_of_kernels_that_do_not_load) {
  Kiln kiln;
  const std::string file = kiln.directory.write("problems", tiny + "\n"),
                    bundle = kiln.directory / "broken.bundle";
  // A compiler of the same name and build whose output is not to be loaded.
  wrap_compiler(kiln, "rubbish", "echo rubbish >kernel.so; exit");
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", bundle}).status == 0);
  count_compilations(kiln);
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  for (const char* origin : {"  compiled ", "  disk "}) {
    const Finished finished = kiln(command);
    BOOST_TEST(finished.status == 0, finished.out);
    BOOST_TEST(contains(finished.out, origin), finished.out);
    BOOST_TEST(contains(finished.err, "does not load"), finished.err);
  }
  BOOST_TEST(compilations(kiln) == 1);
  kiln.environment["KILN_CACHE"] = "strict";
  BOOST_TEST(kiln(command).status == 1);
}

// After an upgrade a bundle's kernels are other kernels' names: strict mode says of which release
// it is. An empty bundle is none that verifies, and is not written.
BOOST_AUTO_TEST_CASE(a_bundle_of_another_release) {
  Kiln kiln;
  const std::string old = kiln.directory / "old.bundle";
  BOOST_REQUIRE(
      kiln::cache::BundleWriter(old).finish("{\"library\":\"0.1.7\",\"manifest\":[]}").empty());
  kiln.environment["KILN_BUNDLE_PATH"] = old;
  kiln.environment["KILN_CACHE"] = "strict";
  const Finished refused = kiln({"conv", "--device", "host", tiny});
  BOOST_TEST(refused.status == 1);
  BOOST_TEST(contains(refused.out, "(absent; " + old + " is of Kiln 0.1.7, and this is Kiln "),
             refused.out);

  const Finished verified = kiln({"bundle", "verify", old});
  BOOST_TEST(verified.status == 1);
  BOOST_TEST(verified.out == old + ": 0 kernels; expected at least one\n");
  BOOST_TEST(kiln({"bundle", "verify", old + "x"}).status == 2);
  kiln.environment.erase("KILN_BUNDLE_PATH");
  kiln.environment.erase("KILN_CACHE");
  const std::string nothing = kiln.directory.write("nothing", "# no problem\n");
  const Finished empty = kiln({"prewarm", nothing, "--arch", "host", "--bundle", old + ".new"});
  BOOST_TEST(empty.status == 1);
  BOOST_TEST(contains(empty.err, nothing + " has no problem"), empty.err);
  BOOST_TEST(!std::filesystem::exists(old + ".new"));
  BOOST_TEST(kiln({"conv", "--device", "host", "--batch", nothing}).status == 1);
}

// A bundle that was made without GPU and driver serves a machine without compilers, for the host
// and for GPUs. Kernels that it lacks are refused by name.
BOOST_AUTO_TEST_CASE(offline) {
  Kiln kiln;
  const std::string bundle = kiln.directory / "kernels.bundle";
  const std::string file = kiln.directory.write("problems", problems);
  const Finished made = kiln({"prewarm", file, "--arch", "host", "--bundle", bundle});
  BOOST_TEST_REQUIRE(made.status == 0, made.out + made.err);
  BOOST_TEST(contains(made.out, "5 kernels"));
  const std::string gpu_bundle = kiln.directory / "gpu.bundle";
  const Finished gpu = kiln({"prewarm", file, "--arch", "sm_80,sm_90a", "--bundle", gpu_bundle});
  const bool has_nvrtc = gpu.status == 0;

  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "target";
  kiln.environment["KILN_CACHE"] = "strict";
  kiln.environment["KILN_BUNDLE_PATH"] = bundle + ":" + (has_nvrtc ? gpu_bundle : "");
  count_compilations(kiln);
  for (const bool compilers : {true, false}) {
    if (!compilers) take_compilers_away(kiln);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"conv", "ic3ih6oc4kh3ph1"},
          {"pool", "ic4ih8kh2sh2ph0"},
          {"act", "--act", "relu", "2x3x4x4"},
          {"softmax", "2x8x3x3"},
          {"tensor", "--op", "add", "2x4x3x3:1x4x1x1:2x4x3x3"}}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--device", "host", "--check", "--json"});
      const Finished finished = kiln(words);
      BOOST_TEST_REQUIRE(finished.status == 0, finished.out + finished.err);
      BOOST_TEST(contains(finished.out, "\"kernel_source\":\"bundle\""));
    }
    const Finished refused = kiln({"conv", "--device", "host", "ic3ih9oc4kh3ph1"});
    BOOST_TEST(refused.status == 1);
    BOOST_TEST(contains(refused.out, "conv --arch host g1mb2_ic3ih9iw9_oc4oh9ow9"), refused.out);
    BOOST_TEST(contains(refused.out, "KILN_CACHE=strict"));
    const std::size_t key = refused.out.find("kernel ") + 7;
    BOOST_TEST(refused.out.substr(key, 32).find_first_not_of("0123456789abcdef") ==
               std::string::npos);
  }
  BOOST_TEST(compilations(kiln) == 0);
  BOOST_TEST(!std::filesystem::exists(kiln.directory / "target"));  // nothing was written

  if (!has_nvrtc) {
    BOOST_TEST_MESSAGE("for GPUs skipped: " << gpu.out);
    return;
  }
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Finished ptx = kiln({"inspect", "ic3ih6oc4kh3ph1", "--emit", "ptx", "--arch", arch});
    BOOST_TEST_REQUIRE(ptx.status == 0, ptx.err);
    BOOST_TEST(contains(ptx.out, std::string(".target ") + arch));
  }
  BOOST_TEST(kiln({"inspect", "ic3ih6oc4kh3ph1", "--emit", "ptx", "--arch", "sm_86"}).status == 1);
}

// A bundle from another build of the compiler is skipped with a warning if a compiler can make the
// kernel, and used if nothing may be compiled.
BOOST_AUTO_TEST_CASE(a_bundle_of_another_compiler) {
  Kiln kiln;
  const std::string file = kiln.directory.write("problems", tiny + "\n"),
                    bundle = kiln.directory / "kernels.bundle";
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", bundle}).status == 0);
  const std::string script = kiln.directory.write(
      "other-c++",
      "#!/bin/sh\n[ \"$1\" = --version ] && { echo other 1.0; exit; }\nexec c++ \"$@\"\n");
  BOOST_REQUIRE(chmod(script.c_str(), 0700) == 0);
  kiln.environment["KILN_HOST_CXX"] = script;
  kiln.environment["KILN_BUNDLE_PATH"] = bundle;
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  kiln.environment["KILN_LOG"] = "info";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  kiln.environment["KILN_CACHE"] = "strict";
  BOOST_TEST(contains(kiln(command).out, "  bundle "));
  kiln.environment["KILN_CACHE"] = "on";
  const Finished compiled = kiln(command);
  BOOST_TEST(contains(compiled.out, "  compiled "), compiled.out);
  BOOST_TEST(contains(compiled.err, "miss (absent; a bundle has it from another compiler build)"),
             compiled.err);
  BOOST_TEST(contains(kiln({"cache", "stat"}).out, "misses_other_producer  1\n"));
}

// An entry that cannot be loaded only leads to a failure if nothing may be compiled.
BOOST_AUTO_TEST_CASE(the_first_layer_that_has_it) {
  Kiln kiln;
  const std::string one = kiln.directory / "one.bundle", two = kiln.directory / "two.bundle";
  const std::string file = kiln.directory.write("problems", tiny + "\n");
  BOOST_REQUIRE(kiln({"prewarm", file, "--arch", "host", "--bundle", one}).status == 0);
  std::filesystem::copy(one, two);
  kiln.environment["KILN_BUNDLE_PATH"] = "/dev/null/absent.bundle:" + one + "::" + two;
  kiln.environment["KILN_LOG"] = "info";
  const std::vector<std::string> command{"conv", "--device", "host", "--check", tiny};
  const Finished first = kiln(command);
  BOOST_TEST(contains(first.out, "  bundle "));
  BOOST_TEST(contains(first.err, "the kernel bundle /dev/null/absent.bundle cannot be opened"));
  BOOST_TEST(contains(first.err, "hit in bundle " + one), first.err);

  // Damaged, it is passed over for the next one, and then for the user's cache.
  for (const std::string& bundle : {one, two}) {
    std::string bytes = kiln_test::read(bundle);
    bytes[200] = static_cast<char>(bytes[200] ^ 1);
    kiln.directory.write(std::filesystem::path(bundle).filename(), bytes);
    const Finished next = kiln(command);
    BOOST_TEST(next.status == 0);
    BOOST_TEST(
        contains(next.err, bundle == one ? "hit in bundle " + two : "hit in the user's cache"),
        next.err);
  }
  const Finished verified = kiln({"bundle", "verify", one, two});
  BOOST_TEST(verified.status == 1);
  BOOST_TEST(count_of(verified.out, "its checksum is wrong") == 2, verified.out);
}

BOOST_AUTO_TEST_SUITE_END()
