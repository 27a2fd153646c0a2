// Kernel development: dumped and edited sources, line information.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>

#include "run_kiln.hpp"
#include "support/text.hpp"

using kiln_test::contains;
using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

namespace fs = std::filesystem;

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1_n\"tiny\"";

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_development)

// Kernels that are compiled or found in the cache are dumped under descriptive names.
BOOST_AUTO_TEST_CASE(dump) {
  Kiln kiln;
  kiln.environment["KILN_DUMP_DIR"] = kiln.directory / "dump/below";
  BOOST_TEST(kiln({"conv", "--device", "host", tiny}).status == 0);
  const auto files = [&] {
    std::map<std::string, std::string> found;
    for (const auto& file : fs::directory_iterator(kiln.directory / "dump/below"))
      found[file.path().filename()] = kiln_test::read(file.path());
    return found;
  };
  const auto first = files();
  BOOST_REQUIRE(first.size() == 2u);
  const auto& [source_file, source] = *first.begin();
  BOOST_TEST(source_file.starts_with("implicit_gemm_fma-"));
  BOOST_TEST(source_file.ends_with(".cpp"));
  BOOST_TEST(contains(source_file, "-host-"));
  BOOST_TEST(source == kiln({"inspect", tiny, "--arch", "host", "--emit", "source"}).out);
  const auto& [binary_file, binary] = *first.rbegin();
  BOOST_TEST(binary_file == source_file.substr(0, source_file.size() - 3) + "so");
  BOOST_TEST((binary == kiln({"inspect", tiny, "--arch", "host", "--emit", "cubin"}).out));

  // From the cache, too.
  fs::remove_all(kiln.directory / "dump");
  BOOST_TEST(contains(kiln({"conv", "--device", "host", tiny}).out, "  disk "));
  BOOST_TEST((files() == first));

  // A folder that cannot be written costs a warning.
  kiln.environment["KILN_DUMP_DIR"] = kiln.directory.write("file", "") + "/below";
  const Finished finished = kiln({"conv", "--device", "host", tiny, "ic3ih6oc4kh3"});
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.err, "KILN_DUMP_DIR is "));
  BOOST_TEST(finished.err.find("KILN_DUMP_DIR") == finished.err.rfind("KILN_DUMP_DIR"));
}

BOOST_AUTO_TEST_CASE(dump_of_what_does_not_compile) {
  Kiln kiln;
  fs::create_directories(kiln.directory / "edited/conv/implicit_gemm");
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = kiln.directory / "edited";
  kiln.environment["KILN_DUMP_DIR"] = kiln.directory / "dump";
  kiln.directory.write("edited/conv/implicit_gemm/implicit_gemm.cuh", "this is no kernel\n");
  // The message has the user's own file and line.
  const Finished failed = kiln({"conv", "--device", "host", tiny});
  BOOST_TEST(failed.status == 1);
  const std::string edited = kiln.directory / "edited/conv/implicit_gemm/implicit_gemm.cuh";
  BOOST_TEST(contains(failed.err, edited + ":1:"), failed.err);
  BOOST_TEST(!contains(failed.err, "has no file of the library's kernels"), failed.err);
  const Finished by_nvrtc = kiln({"inspect", tiny, "--arch", "sm_90a", "--emit", "ptx"});
  BOOST_TEST(contains(by_nvrtc.err, edited + "(1): error"), by_nvrtc.err);
  BOOST_REQUIRE(!fs::is_empty(kiln.directory / "dump"));
  const auto file = fs::directory_iterator(kiln.directory / "dump")->path();
  BOOST_TEST(contains(kiln_test::read(file), "\nthis is no kernel\n"));
}

// An edited kernel file replaces the embedded one; all other files stay the library's.
BOOST_AUTO_TEST_CASE(edited_kernel_sources) {
  Kiln kiln;
  const std::vector<std::string> command{"inspect", tiny, "--arch", "host", "--emit", "source"};
  const std::string before = kiln(command).out;
  fs::create_directories(kiln.directory / "edited/conv/implicit_gemm");
  fs::create_directories(kiln.directory / "edited/conv/store");
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = kiln.directory / "edited";
  const Finished strange = kiln(command);
  BOOST_TEST(strange.out == before);  // no file there yet
  BOOST_TEST(contains(strange.err, "which has no file of the library's kernels"), strange.err);
  const std::string original = kiln_test::read(KILN_KERNEL_SOURCES "/conv/store/epilogue.cuh");
  BOOST_REQUIRE(!original.empty());
  kiln.directory.write("edited/conv/store/epilogue.cuh", original);
  BOOST_TEST(kiln(command).out == before);  // the same text, so the same key
  BOOST_TEST(kiln({"conv", "--device", "host", "--check", tiny}).status == 0);

  kiln.directory.write("edited/conv/store/epilogue.cuh", original + "// edited");
  const std::string after = kiln(command).out;
  BOOST_TEST(after.size() == before.size() + 10);
  BOOST_TEST(contains(after, "\n// edited\n"));
  const Finished compiled = kiln({"conv", "--device", "host", "--check", tiny});
  BOOST_TEST(compiled.status == 0);
  BOOST_TEST(contains(compiled.out, "  compiled "));  // not the old kernel from the cache

  std::string speaking =
      kiln_test::read(KILN_KERNEL_SOURCES "/conv/implicit_gemm/implicit_gemm.cuh");
  const std::size_t body = speaking.find("{\n", speaking.find("KILN_KERNEL(implicit_gemm,"));
  BOOST_REQUIRE(body != std::string::npos);
  speaking.insert(body + 2, "  if (thread_x() == 0) printf(\"block %u\\n\", block_x());\n");
  kiln.directory.write("edited/conv/implicit_gemm/implicit_gemm.cuh", speaking);
  const Finished spoken = kiln({"conv", "--device", "host", "--check", tiny});
  BOOST_TEST(spoken.status == 0);
  BOOST_TEST(contains(spoken.out, "block 0\n"));
  fs::remove(kiln.directory / "edited/conv/implicit_gemm/implicit_gemm.cuh");

  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = kiln.directory / "absent";
  const Finished absent = kiln(command);
  BOOST_TEST(absent.status == 2);
  BOOST_TEST(contains(absent.err, "KILN_KERNEL_SOURCE_DIR is " + (kiln.directory / "absent")));
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = kiln.directory / "edited";
  fs::remove(kiln.directory / "edited/conv/store/epilogue.cuh");
  fs::create_directories(kiln.directory / "edited/conv/store/epilogue.cuh");
  BOOST_TEST(contains(kiln(command).err, "epilogue.cuh, which KILN_KERNEL_SOURCE_DIR stands for"));
}

BOOST_AUTO_TEST_CASE(kernel_files_to_edit) {
  Kiln kiln;
  const std::string folder = kiln.directory / "mine";
  const std::vector<std::string> command{"inspect", tiny, "--arch", "host", "--sources", folder};
  const Finished first = kiln(command);
  BOOST_TEST(first.status == 0);
  BOOST_REQUIRE(first.lines().size() > 5u);
  for (const std::string& line : first.lines()) {
    BOOST_REQUIRE(line.starts_with("written  " + folder + "/"));
    const std::string path = line.substr(9);
    BOOST_TEST(kiln_test::read(path) ==
               kiln_test::read(KILN_KERNEL_SOURCES + path.substr(folder.size())));
  }
  // What was edited is not lost, and is what the kernel is made of.
  kiln.directory.write("mine/conv/implicit_gemm/implicit_gemm.cuh",
                       "#include \"conv/absent.cuh\"\n");
  const Finished again = kiln(command);
  BOOST_TEST(again.status == 0);
  BOOST_TEST(
      contains(again.out, "kept     " + folder + "/conv/implicit_gemm/implicit_gemm_fma.cu\n"));
  BOOST_TEST(!contains(again.out, "written"));
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = folder;
  const Finished broken = kiln({"inspect", tiny, "--arch", "host", "--emit", "source"});
  BOOST_TEST(broken.status == 2);
  BOOST_TEST(contains(broken.err, "a kernel includes conv/absent.cuh, which is neither in "));
  kiln.environment.erase("KILN_KERNEL_SOURCE_DIR");

  BOOST_TEST(kiln({"inspect", "--sources", folder}).status == 2);
  BOOST_TEST(kiln({"inspect", tiny, "--sources", folder, "--arch", "sm_80,sm_90"}).status == 2);
  const std::string file = kiln.directory.write("file", "");
  BOOST_TEST(contains(kiln({"inspect", tiny, "--sources", file}).err, "cannot write " + file));
}

// The flag and the environment variable have the same effect, and the working directory is not part
// of the key.
BOOST_AUTO_TEST_CASE(line_information) {
  Kiln kiln;
  const std::vector<std::string> command{"inspect", tiny, "--arch", "sm_80", "--emit", "ptx"};
  const Finished plain = kiln(command);
  if (plain.status != 0 && contains(plain.err, "there is no NVRTC")) {
    BOOST_TEST_MESSAGE("skipped: " << plain.err);
    return;
  }
  BOOST_TEST(!contains(plain.out, ".loc"));
  std::vector<std::string> flagged = command;
  flagged.emplace_back("--lineinfo");
  const Finished lines = kiln(flagged);
  BOOST_TEST(lines.status == 0);
  BOOST_TEST(contains(lines.out, ".loc\t1 "));
  const std::size_t file = lines.out.find(".file\t1 \"/kiln/");
  BOOST_REQUIRE(file != std::string::npos);
  const std::string name = lines.out.substr(file + 15, lines.out.find('"', file + 15) - file - 15);
  kiln.environment["KILN_LINEINFO"] = "1";
  kiln.environment["KILN_DUMP_DIR"] = kiln.directory / "dump";
  BOOST_TEST((kiln(command).out == lines.out));
  BOOST_TEST(fs::exists(kiln.directory / "dump/" + name), name);  // where a profiler finds it
  kiln.environment["KILN_LINEINFO"] = "0";
  BOOST_TEST((kiln(command).out == plain.out));

  // Pre-warmed with the flag, it is found by whoever sets the variable.
  const std::string problems = kiln.directory.write("problems", "ic3ih6oc4kh3\n");
  BOOST_TEST(kiln({"prewarm", problems, "--arch", "sm_80", "--lineinfo"}).status == 0);
  BOOST_TEST(kiln({"prewarm", problems, "--arch", "sm_80"}).lines().back() ==
             "1 compiled, 0 already there, 0 failed");
  kiln.environment["KILN_LINEINFO"] = "1";
  BOOST_TEST(kiln({"prewarm", problems, "--arch", "sm_80"}).lines().back() ==
             "0 compiled, 1 already there, 0 failed");
}

BOOST_AUTO_TEST_SUITE_END()
