// Headers of kernels: each declares what it needs, some kernel includes it, and a kernel's names do
// not hide one another.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/embedded.hpp"
#include "codegen/source.hpp"
#include "compile/compiler.hpp"
#include "compile/run_program.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/temporary_folder.hpp"
#include "ops/kernel_cases.hpp"

BOOST_AUTO_TEST_SUITE(kernel_headers)

namespace {

using namespace test;

// Headers that use what their includer has chosen. Each says so in its first comment, and compiles
// after one of the headers named here.
const std::map<std::string, std::vector<std::string>> chosen_before{
    {"conv/dense/operand_rows.cuh", {"conv/dense/tile.cuh"}},
    {"conv/dense/store.cuh", {"conv/dense/tile.cuh"}},
    {"conv/implicit_gemm/implicit_gemm.cuh",
     {"conv/mma/fma_multiply.cuh", "conv/mma/mma_multiply.cuh"}},
    {"conv/wgrad/implicit_gemm.cuh", {"conv/mma/fma_multiply.cuh", "conv/mma/mma_multiply.cuh"}}};

// A kernel of each file and engine. Late constants are left out: they are macros, for which a
// kernel includes common/late.cuh first.
std::vector<KernelSpec> make_kernels() {
  std::vector<KernelSpec> out;
  std::set<std::string> seen;
  const auto add = [&](const Proposal& proposal) {
    const auto one = [&](const KernelSpec& spec) {
      if (spec.late_bytes == 0 && seen.insert(cat(spec.file, " ", spec.engine)).second)
        out.push_back(spec);
    };
    for (const Step& step : proposal.steps) one(step.kernel);
  };
  for (const DataType type : {KILN_DATA_HALF, KILN_DATA_FLOAT, KILN_DATA_DOUBLE})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      for (const Problem& problem : problems(type, layout, true))
        for (const Option& option :
             all_candidates(problem, known_architecture("sm_90a"), most_workspace))
          add(option.choice.proposal);
      for (const Case& item : every_tile(type, layout, "sm_90a")) add(item.option->choice.proposal);
    }
  return out;
}

const std::vector<KernelSpec>& kernels() {
  static const std::vector<KernelSpec> all = make_kernels();
  return all;
}

// The generated constants of a kernel.
std::string constants_of(const KernelSpec& spec, kilnDeviceKind_t kind) {
  const std::string text = generate_source(spec, kind);
  return text.substr(0, text.find("// ---- "));
}

// Calls test(path, text) once for each header: `text` is the constants of a kernel that includes
// it, the header that this one needs before it, if any, and the header. Returns the paths.
template <class Test>
std::set<std::string> each_header_alone(kilnDeviceKind_t kind, const Test& test) {
  std::set<std::string> done;
  for (const KernelSpec& spec : kernels()) {
    const std::vector<SourceFile> files = source_files(spec, kind);
    const auto is_included = [&](const std::string& path) {
      return std::ranges::find(files, path, &SourceFile::path) != files.end();
    };
    for (const SourceFile& file : files) {
      if (file.path.ends_with(".cu") || done.contains(file.path)) continue;
      std::string includes;
      if (const auto found = chosen_before.find(file.path); found != chosen_before.end()) {
        const auto before = std::ranges::find_if(found->second, is_included);
        if (before == found->second.end()) continue;
        includes = cat("#include \"", *before, "\"\n");
      }
      includes += cat("#include \"", file.path, "\"\n");
      done.insert(file.path);
      test(file.path, cat(constants_of(spec, kind), expand_includes(includes, kind)));
    }
  }
  return done;
}

// What the C++ compiler of the host device says of a text. It checks names and types, and makes no
// code.
ProgramResult check(const std::string& text, const std::string& warnings) {
  const std::string& chosen = config().host_cxx;
  const TemporaryFolder folder;
  folder.write("kernel.cpp", text);
  return run_program({find_program(chosen.empty() ? "c++" : chosen), "-std=c++20", "-fsyntax-only",
                      warnings, "kernel.cpp"},
                     folder.path());
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_compiles_alone_and_is_included_by_some_kernel) {
  std::set<std::string> done =
      each_header_alone(KILN_DEVICE_HOST, [&](const std::string& path, const std::string& text) {
        const ProgramResult result = check(text, "-w");
        BOOST_TEST(result.succeeded, path << ": " << result.ending << "\n"
                                          << result.output.substr(0, 1000));
      });
  // Compiled to machine code, for NVRTC has no shorter way.
  std::string why;
  const auto nvrtc = find_nvrtc(why);
  BOOST_REQUIRE_MESSAGE(nvrtc, why);
  done.merge(
      each_header_alone(KILN_DEVICE_CUDA, [&](const std::string& path, const std::string& text) {
        if (!path.starts_with("cuda/")) return;
        try {
          nvrtc->compile(text, path, nvrtc_options("sm_90a"));
        } catch (const Error& error) {
          BOOST_ERROR(path << ": " << std::string(error.what()).substr(0, 1000));
        }
      }));
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string path(file.path);
    if (!path.ends_with(".cu") && !path.starts_with("bench/"))
      BOOST_TEST(done.contains(path), path << " is included by no kernel");
  }
}

// Two definitions of a name are an error of the compiler; a macro that is defined again, and a
// parameter or a local name like that of a constant, are not.
BOOST_AUTO_TEST_CASE(names_of_a_kernel_do_not_hide_one_another) {
  for (const KernelSpec& spec : kernels()) {
    const std::string said = check(generate_source(spec, KILN_DEVICE_HOST), "-Wshadow").output;
    for (const char* fault :
         {"shadows a global", "a variable in the global namespace", "redefined"}) {
      const std::size_t at = said.find(fault);
      if (at == std::string::npos) continue;
      const std::size_t from = at - std::min<std::size_t>(at, 200);
      BOOST_ERROR(spec.engine << ", " << spec.file << ": " << said.substr(from, 600));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
