// kiln inspect.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "run_kiln.hpp"
#include "support/text.hpp"

using kiln_test::contains;
using kiln_test::Finished;
using kiln_test::Kiln;

namespace {

namespace fs = std::filesystem;

const std::string tiny = "mb2_ic3ih6_oc4_kh3ph1_n\"tiny\"";

}  // namespace

BOOST_AUTO_TEST_SUITE(inspect)

BOOST_AUTO_TEST_CASE(needs_no_gpu) {
  const Kiln kiln;
  const Finished spec = kiln({"inspect", tiny, "--arch", "sm_80"});
  BOOST_TEST(spec.status == 0);
  BOOST_TEST(contains(spec.out, "architecture   sm_80\n"));
  BOOST_TEST(contains(spec.out, "g1mb2_ic3ih6iw6_oc4oh6ow6"));
  BOOST_TEST(contains(spec.out, "mulhi(n, "));  // a magic divisor
  BOOST_TEST(contains(spec.out, "options        --gpu-architecture=sm_80 "));
  // Assembled with few optimizations, and with all.
  const std::string few = "--ptxas-options=--Ofast-compile=min", large = "mb128_ic96ih64oc128kh9";
  const auto strict = [&](const std::string& direction) {
    return kiln({"inspect", "conv", "--math", "strict", "--dir", direction, "--arch", "sm_90a",
                 large})
        .out;
  };
  BOOST_TEST(contains(strict("fwd"), few));
  BOOST_TEST(contains(strict("dgrad"), "engine         implicit_gemm_fma"));
  BOOST_TEST(!contains(strict("dgrad"), few));

  const Finished cuda = kiln({"inspect", tiny, "--emit", "source", "--arch", "sm_90"});
  const Finished host = kiln({"inspect", tiny, "--emit", "source", "--arch", "host"});
  BOOST_TEST(cuda.status == 0);
  BOOST_TEST(host.status == 0);
  BOOST_TEST(contains(cuda.out, "__global__"));
  BOOST_TEST(!contains(host.out, "__global__"));
  BOOST_TEST(!contains(cuda.out, "#include \""));  // self-contained

  // A default architecture where there is no GPU.
  BOOST_TEST(contains(kiln({"inspect", tiny}).out, "architecture   sm_90a\n"));
}

// All that was considered, and all that was refused, each engine in one of the two.
BOOST_AUTO_TEST_CASE(lists_candidates_and_refusals) {
  const Kiln kiln;
  const std::string line = "mb16_ic128ih13oc384oh11kh3ph0";
  const Finished text = kiln({"inspect", line, "--emit", "candidates", "--arch", "sm_90a"});
  BOOST_TEST_INFO(text.out << text.err);
  BOOST_TEST(text.status == 0);
  BOOST_TEST(contains(text.out, "\n> "));
  BOOST_TEST(contains(text.out, "implicit_gemm_fma       "));
  BOOST_TEST(contains(text.out, "refused by\n"));

  const Finished objects = kiln({"inspect", line, "--arch", "sm_80,sm_90a", "--json"});
  BOOST_TEST_INFO(objects.err);
  BOOST_REQUIRE(objects.lines().size() == 2u);
  const auto spec = nlohmann::json::parse(objects.lines()[1]);
  BOOST_TEST(spec["architecture"] == "sm_90a");
  BOOST_TEST(spec["constants"].size() > 20u);
  int chosen = 0;
  double least = 0;
  std::set<std::string> taken, refused;
  for (const auto& candidate : spec["candidates"]) {
    BOOST_TEST(candidate["estimate_us"].get<double>() >= least);
    least = candidate["estimate_us"];
    taken.insert(candidate["engine"]);
    if (!candidate["chosen"].get<bool>()) continue;
    ++chosen;
    BOOST_TEST(candidate["engine"] == spec["engine"]);
    BOOST_TEST(candidate["tile"] == spec["tile"]);
  }
  BOOST_TEST(chosen == 1);
  for (const auto& refusal : spec["refusals"]) {
    BOOST_TEST(!refusal["reason"].get<std::string>().empty());
    refused.insert(refusal["engine"]);
  }
  for (const std::string& engine : refused) BOOST_TEST(!taken.contains(engine));
  BOOST_TEST(taken.contains("direct"));
  BOOST_TEST(refused.contains("few_output_channels_mma"));

  const Finished source = kiln({"inspect", line, "--arch", "host", "--emit", "source", "--json"});
  const std::string plain = kiln({"inspect", line, "--arch", "host", "--emit", "source"}).out;
  BOOST_TEST(nlohmann::json::parse(source.out)["source"] == plain);
  BOOST_TEST(kiln({"inspect", line, "--emit", "cubin", "--json"}).status == 2);
  BOOST_TEST(kiln({"inspect", "--json", "--diff", tiny, line}).status == 2);
}

BOOST_AUTO_TEST_CASE(writes_machine_code_to_files_alone) {
  const Kiln kiln;
  const std::string path = kiln.directory / "kernel.so";
  const std::vector<std::string> command{"inspect", tiny, "--arch", "host", "--emit", "cubin"};
  std::vector<std::string> to_file = command;
  to_file.insert(to_file.end(), {"-o", path});
  BOOST_TEST(kiln(to_file).status == 0);
  BOOST_TEST(
      kiln_test::read(path).starts_with("\x7f"
                                        "ELF"));
  BOOST_TEST(kiln(command).out == kiln_test::read(path));  // a pipe or a file will do
  const Finished terminal = kiln.on_terminal(command);
  BOOST_TEST(terminal.status == 2);
  BOOST_TEST(terminal.out == "");
  BOOST_TEST(contains(terminal.err, "expected -o FILE"));
  std::vector<std::string> by_name = command;  // the terminal as a file
  by_name.insert(by_name.end(), {"-o", "/dev/stdout"});
  BOOST_TEST(kiln.on_terminal(by_name).status == 2);

  to_file.back() = kiln.directory / "absent/kernel.so";
  BOOST_TEST(contains(kiln(to_file).err, "cannot write"));
}

BOOST_AUTO_TEST_CASE(says_what_it_cannot_do) {
  Kiln kiln;
  const Finished architecture = kiln({"inspect", tiny, "--arch", "sm_12"});
  BOOST_TEST(architecture.status == 2);
  BOOST_TEST(contains(architecture.err, "sm_80"));  // what it knows
  BOOST_TEST(kiln({"inspect", "ic3ih6oc4kh3", "--emit", "everything"}).status == 2);
  const Finished typo = kiln({"inspect", "ic3ih6oc4kq3"});
  BOOST_TEST(typo.status == 2);
  BOOST_TEST(contains(typo.err, "column 10"));
  BOOST_TEST(contains(kiln({"inspect", tiny, "--arch", "host", "--emit", "ptx"}).err, "no ptx"));

  kiln.environment["KILN_NVRTC"] = "/dev/null/libnvrtc.so";
  const Finished compiler = kiln({"inspect", tiny, "--arch", "sm_80", "--emit", "ptx"});
  BOOST_TEST(compiler.status == 1);
  BOOST_TEST(contains(compiler.err, "/dev/null/libnvrtc.so"));
}

// Where there is NVRTC: the stages behind it, and a disassembler of our own on PATH.
BOOST_AUTO_TEST_CASE(compiles_for_any_architecture) {
  Kiln kiln;
  const Finished ptx = kiln({"inspect", tiny, "--arch", "sm_80", "--emit", "ptx"});
  if (ptx.status != 0 && contains(ptx.err, "there is no NVRTC")) {
    BOOST_TEST_MESSAGE("skipped: " << ptx.err);
    return;
  }
  BOOST_TEST(ptx.status == 0);
  BOOST_TEST(contains(ptx.out, ".target sm_80"));

  const std::string tool = kiln.directory.write(
      "nvdisasm", "#!/bin/sh\nhead -c 4 \"$1\"; echo; echo disassembled; exit $KILN_TEST_STATUS\n");
  BOOST_REQUIRE(chmod(tool.c_str(), 0700) == 0);
  kiln.environment["PATH"] = (kiln.directory / "") + ":" + kiln.environment["PATH"];
  kiln.environment["KILN_TEST_STATUS"] = "0";
  const std::vector<std::string> command{"inspect", tiny, "--arch", "sm_80", "--emit", "sass"};
  const Finished sass = kiln(command);
  BOOST_TEST_INFO(sass.err);
  BOOST_TEST(sass.status == 0);
  BOOST_TEST(sass.out ==
             "\x7f"
             "ELF\ndisassembled\n");
  kiln.environment["KILN_TEST_STATUS"] = "3";
  const Finished failed = kiln(command);
  BOOST_TEST(failed.status == 1);
  BOOST_TEST(contains(failed.err, "exit status 3"));
}

// Two problems, or two architectures.
BOOST_AUTO_TEST_CASE(diff) {
  const Kiln kiln;
  const std::string wide = "mb2_ic3ih6_oc4_kh5ph2";
  const Finished problems =
      kiln({"inspect", "--arch", "sm_80", "--emit", "source", "--diff", tiny, wide});
  BOOST_TEST_INFO(problems.err);
  BOOST_TEST(problems.status == 0);
  BOOST_TEST(problems.out.starts_with("--- " + tiny + "\n+++ " + wide + "\n@@ "));
  BOOST_TEST(contains(problems.out, "\n-constexpr int FILTER_R[] = {3};\n"));
  BOOST_TEST(contains(problems.out, "\n+constexpr int FILTER_R[] = {5};\n"));
  BOOST_TEST(!contains(problems.out, "\n-constexpr int CHANNELS"));

  const Finished architectures = kiln({"inspect", tiny, "--diff", "sm_80", "sm_90a"});
  BOOST_TEST(architectures.status == 0);
  BOOST_TEST(contains(architectures.out, "\n-architecture   sm_80\n"));
  BOOST_TEST(contains(architectures.out, "\n+architecture   sm_90a\n"));

  const std::string pool = "mb2ic3ih6kh2";
  const Finished operation =
      kiln({"inspect", "pool", "--diff", pool, "mb2ic3ih6kh3", "--arch", "host"});
  BOOST_TEST(contains(operation.out, "\n+problem        pool"));

  // A new batch of the same range is the same kernel: nothing differs.
  const Finished same = kiln({"inspect", "--emit", "source", "--arch", "sm_80", "--diff",
                              "mb97ic64ih14oc128kh3ph1", "mb4096ic64ih14oc128kh3ph1"});
  BOOST_TEST(same.status == 0);
  BOOST_TEST(same.out == "");

  const std::vector<std::vector<std::string>> wrong = {
      {"--diff", tiny, wide, pool},
      {"--diff", "sm_80", "sm_90a"},
      {"--diff", tiny},
      {"--diff", tiny, wide, "--emit", "cubin"},
      {"--diff", tiny, wide, "--arch", "sm_80,sm_90a"}};
  for (const std::vector<std::string>& arguments : wrong) {
    std::vector<std::string> command{"inspect"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Finished finished = kiln(command);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, "--diff"));
  }
}

BOOST_AUTO_TEST_CASE(several_architectures) {
  const Kiln kiln;
  const Finished spec = kiln({"inspect", tiny, "--arch", "sm_80,sm_90a"});
  BOOST_TEST(spec.status == 0);
  BOOST_TEST(contains(spec.out, "architecture   sm_80\n"));
  BOOST_TEST(contains(spec.out, "\n\nproblem"));
  BOOST_TEST(contains(spec.out, "architecture   sm_90a\n"));
  const Finished source = kiln({"inspect", tiny, "--arch", "sm_80,sm_90a", "--emit", "source"});
  BOOST_TEST(source.status == 2);
  BOOST_TEST(contains(source.err, "--arch is sm_80,sm_90a"));
}

// Whatever the numbers of a line are: 2 s of processor time and 300 MB of addresses.
BOOST_AUTO_TEST_CASE(huge_batches_take_little) {
  Kiln kiln;
  const std::string limited =
      "ulimit -t 2; ulimit -v 300000; exec " + std::exchange(kiln.program, "/bin/sh") + " \"$@\"";
  for (const std::string dir : {"fwd", "dgrad", "wgrad"})
    for (const std::string batch : {"339000", "1000000000"}) {
      const Finished finished = kiln({"-c", limited, "kiln", "inspect", "--arch", "h100", "--json",
                                      "conv --workspace 16777216 --dt f16 --dir " + dir + " mb" +
                                          batch + "ic64ih28oc64kh3ph1"});
      BOOST_TEST(finished.status == 0, dir << ", batch " << batch << ": " << finished.err);
      const bool in_chunks = !contains(finished.out, "\"steps\":1,");
      BOOST_TEST(in_chunks == (batch == "339000"), finished.out);
      BOOST_TEST((contains(finished.out, "\"different_steps\":1,") || in_chunks));
    }
  // Each launch is a step by itself, though few are listed.
  const std::string layer = "conv --workspace 16777216 --dt f16 mb339000ic64ih28oc64kh3ph1";
  const auto step = [&](const char* number) {
    return kiln({"-c", limited, "kiln", "inspect", "--arch", "h100", "--step", number, layer});
  };
  BOOST_TEST(contains(step("3001").out, " differ in more than addresses"));
  BOOST_TEST(contains(step("100000").err, "--step is 100000; expected 0 to "));
}

BOOST_AUTO_TEST_CASE(resources) {
  Kiln kiln;
  const Finished finished =
      kiln({"inspect", "softmax", "16x1000x1x1", "--arch", "sm_80,sm_90a", "--emit", "resources"});
  if (finished.status != 0 && contains(finished.err, "there is no NVRTC")) {
    BOOST_TEST_MESSAGE("skipped: " << finished.err);
    return;
  }
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(finished.out, "architecture   sm_80 (A100)\nkernel         softmax, tile "));
  BOOST_TEST(contains(finished.out, "architecture   sm_90a (H200)\n"));
  BOOST_TEST(contains(finished.out, "\nspills         none\n"));
  BOOST_TEST(contains(finished.out, "\nshared memory  0 bytes static, 64 dynamic a block\n"));
  BOOST_TEST(contains(finished.out, "\nthreads        256 a block\n"));
  BOOST_TEST(contains(finished.out,
                      "64 of 64 warps (100%) a multiprocessor; more are ruled out by threads"));
  const Finished host = kiln({"inspect", tiny, "--arch", "host", "--emit", "resources"});
  BOOST_TEST(host.status == 2);
  BOOST_TEST(contains(host.err, "no resources"));

  // A kernel that has more to keep than registers.
  fs::create_directories(kiln.directory / "edited/conv/implicit_gemm");
  kiln.environment["KILN_KERNEL_SOURCE_DIR"] = kiln.directory / "edited";
  kiln.directory.write("edited/conv/implicit_gemm/implicit_gemm.cuh", R"(
extern "C" __global__ void __launch_bounds__(1024, 2) implicit_gemm(double* p) {
  double v[64];
  for (int i = 0; i < 64; ++i) v[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 64; ++i) p[i * 1024 + threadIdx.x] = v[i] * v[63 - i];
})");
  const std::string spilling =
      kiln({"inspect", tiny, "--arch", "sm_80", "--emit", "resources"}).out;
  BOOST_TEST_INFO(spilling);
  BOOST_TEST(contains(spilling, "\nregisters      32 a thread\n"));
  BOOST_TEST(contains(spilling, " bytes stored, "));
  BOOST_TEST(!contains(spilling, "\nlocal memory   0 bytes"));
}

BOOST_AUTO_TEST_SUITE_END()
