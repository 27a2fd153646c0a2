// NVRTC. It is found without loading it, and opened when the first kernel has to be compiled.
#include <nvrtc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>

#include "compile/compiler.hpp"
#include "compile/elf_build_id.hpp"
#include "compile/failure.hpp"
#include "compile/nvrtc_search.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/loader.hpp"
#include "core/process/per_process.hpp"
#include "core/process/process_end.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view quick_assembly_option = "--ptxas-options=--Ofast-compile=min";

struct Api {
  int major = 0, minor = 0;
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcCreateProgram) create;
  decltype(&::nvrtcDestroyProgram) destroy;
  decltype(&::nvrtcCompileProgram) compile;
  decltype(&::nvrtcGetErrorString) error_string;
  decltype(&::nvrtcGetProgramLogSize) log_size;
  decltype(&::nvrtcGetProgramLog) log;
  decltype(&::nvrtcGetPTXSize) ptx_size;
  decltype(&::nvrtcGetPTX) ptx;
  decltype(&::nvrtcGetCUBINSize) cubin_size;
  decltype(&::nvrtcGetCUBIN) cubin;

  explicit Api(const std::string& path) {
    std::string why;
    void* const library = open_library(path, why);
    if (!library) fail(KILN_STATUS_NO_COMPILER, "NVRTC cannot be opened: ", why);
    const auto symbol = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(find_symbol(library, name));
      if (!function) fail(KILN_STATUS_NO_COMPILER, path, " has no function ", name);
    };
    symbol(version, "nvrtcVersion");
    symbol(create, "nvrtcCreateProgram");
    symbol(destroy, "nvrtcDestroyProgram");
    symbol(compile, "nvrtcCompileProgram");
    symbol(error_string, "nvrtcGetErrorString");
    symbol(log_size, "nvrtcGetProgramLogSize");
    symbol(log, "nvrtcGetProgramLog");
    symbol(ptx_size, "nvrtcGetPTXSize");
    symbol(ptx, "nvrtcGetPTX");
    symbol(cubin_size, "nvrtcGetCUBINSize");
    symbol(cubin, "nvrtcGetCUBIN");
    version(&major, &minor);
    // NVRTC opens its builtins by bare name at the first compilation. They are loaded here first,
    // from NVRTC's own folder, because the loader does not search the folders of Python wheels.
    std::error_code ignored;
    const fs::path builtins =
        fs::canonical(path, ignored)
            .replace_filename(cat("libnvrtc-builtins.so.", major, ".", minor));
    open_library(builtins.string(), why);
    put_process_end_first();
  }
};

// Compilations that are running in this process. NVRTC has locks of its own; in a child that was
// forked while a thread of its parent compiled, they stay locked.
struct Compilations {
  int under_way = 0;
  bool locked_for_ever = false;
  static Compilations of_child(const Compilations& parent) {
    return {0, parent.locked_for_ever || parent.under_way > 0};
  }
};
constinit PerProcess<Compilations> compilations("NVRTC compilations");

class CompilationUnderWay {
 public:
  CompilationUnderWay() {
    const auto all = compilations.lock();
    if (all->locked_for_ever)
      fail(KILN_STATUS_NO_COMPILER,
           "this process was forked while its parent compiled with NVRTC, which can therefore not "
           "be "
           "used here; expected a kernel that is cached, or a process that is started anew");
    ++all->under_way;
  }
  ~CompilationUnderWay() { --compilations.lock()->under_way; }
  CompilationUnderWay(const CompilationUnderWay&) = delete;
  CompilationUnderWay& operator=(const CompilationUnderWay&) = delete;
};

struct Program {
  const Api& api;
  nvrtcProgram handle = nullptr;
  explicit Program(const Api& nvrtc) : api(nvrtc) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (handle) api.destroy(&handle);
  }

  // The text from a pair of NVRTC's functions that return its size, with the final 0, and the text.
  std::string text(decltype(Api::ptx_size) size_of, decltype(Api::ptx) fetch) const {
    std::size_t size = 0;
    if (size_of(handle, &size) != NVRTC_SUCCESS || size <= 1) return "";
    std::string out(size, '\0');
    if (fetch(handle, out.data()) != NVRTC_SUCCESS) return "";
    out.pop_back();
    return out;
  }
};

class Nvrtc final : public Compiler {
 public:
  explicit Nvrtc(fs::path path) : path_(std::move(path)), identity_(identify()) {}

  std::string identity() const override { return identity_; }

  std::string description() const override {
    const std::string release = nvrtc_release(path_);
    return cat("NVRTC ", release.empty() ? "of an unknown release" : release, ", ", path_.string());
  }

  Compiled compile(const std::string& source, const std::string& name,
                   const std::vector<std::string>& options) const override {
    const CompilationUnderWay under_way;
    const Api& nvrtc = api();
    const auto start = std::chrono::steady_clock::now();
    Program program(nvrtc);
    // Line information contains the text's path. NVRTC would put the working directory before a
    // relative one, but the code must not depend on it. Profilers look only for the file's name, in
    // the folders that they are given.
    const std::string path = "/kiln/" + name;
    check(nvrtc.create(&program.handle, source.c_str(), path.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
    const bool since_12_9 = nvrtc.major * 100 + nvrtc.minor >= 1209;
    std::vector<const char*> arguments;
    for (const std::string& option : options)
      if (since_12_9 || option != quick_assembly_option) arguments.push_back(option.c_str());
    // Since 12.9 NVRTC has a cache of its own. It is not used: Kiln's cache is the documented and
    // bounded one, so every compilation here is a real one.
    if (since_12_9) arguments.push_back("--no-cache");
    const nvrtcResult result =
        nvrtc.compile(program.handle, static_cast<int>(arguments.size()), arguments.data());
    Compiled out;
    out.log = program.text(nvrtc.log_size, nvrtc.log);
    if (result != NVRTC_SUCCESS)
      fail_compilation(cat("NVRTC refused ", name, " (", nvrtc.error_string(result), ")"), out.log,
                       options, source);
    out.ptx = program.text(nvrtc.ptx_size, nvrtc.ptx);
    std::size_t size = 0;
    check(nvrtc.cubin_size(program.handle, &size), "nvrtcGetCUBINSize");
    out.binary.resize(size);
    check(nvrtc.cubin(program.handle, reinterpret_cast<char*>(out.binary.data())), "nvrtcGetCUBIN");
    out.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return out;
  }

 private:
  const Api& api() const {
    static constinit Once<Api> opened("NVRTC functions");
    return opened.get([&] { return Api(path_.string()); });
  }

  void check(nvrtcResult result, const char* call) const {
    if (result != NVRTC_SUCCESS)
      fail(KILN_STATUS_COMPILE_FAILED, call, " failed: ", api().error_string(result));
  }

  // The exact build, because nvrtcVersion() tells only major.minor: the linker's build ids of the
  // library and of the builtins beside it, read without loading either. If a vendor removed them,
  // the banner in the PTX of a trivial kernel tells the build, which costs one compilation.
  std::string identify() const {
    std::string id = elf_build_id(path_.string());
    if (id.empty()) {
      const std::string ptx = compile("", "banner.cu", nvrtc_options("sm_80")).ptx;
      return cat("nvrtc ", ptx.substr(0, ptx.find(".version")));
    }
    std::error_code error;
    const fs::path real = fs::canonical(path_, error);
    const std::string release = release_of(real.filename().string(), "libnvrtc.so.");
    std::set<std::string> builtins;  // sorted, because a folder's order may change
    const fs::directory_iterator folder(real.parent_path(), error);
    if (error)
      fail(KILN_STATUS_NO_COMPILER, "the folder of ", path_.string(),
           " cannot be read: ", error.message());
    for (const auto& file : folder) {
      constexpr std::string_view prefix = "libnvrtc-builtins.so.";
      const std::string name = file.path().filename().string();
      if (!name.starts_with(prefix) || file.is_symlink()) continue;
      // The folder may also hold builtins of other releases.
      if ((release_of(name, prefix) + ".").starts_with(release.empty() ? "" : release + "."))
        builtins.insert(elf_build_id(file.path().string()));
    }
    return cat("nvrtc ", id, builtins.empty() ? "" : "+", join(builtins, "+"));
  }

  // "13.0" for "libnvrtc.so.13.0.88", "13" for "libnvrtc.so.13", "" for any other name.
  static std::string release_of(const std::string& name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return "";
    const std::string version = name.substr(prefix.size());
    return version.substr(0,
                          version.find('.', std::min(version.find('.'), version.size() - 1) + 1));
  }

  fs::path path_;
  std::string identity_;
};

}  // namespace

std::vector<std::string> nvrtc_options(const std::string& arch, bool quick_assembly) {
  std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17",
                                      "--diag-suppress=177"};
  if (config().line_info) options.emplace_back("--generate-line-info");
  if (quick_assembly) options.emplace_back(quick_assembly_option);
  return options;
}

std::shared_ptr<const Compiler> find_nvrtc(std::string& why) {
  static constinit Once<std::shared_ptr<const Compiler>> found("NVRTC");
  const auto* const nvrtc = found.get_if([&]() -> std::unique_ptr<std::shared_ptr<const Compiler>> {
    const fs::path path = find_nvrtc_library(why);
    if (path.empty()) return nullptr;
    try {
      return std::make_unique<std::shared_ptr<const Compiler>>(std::make_shared<const Nvrtc>(path));
    } catch (const Error& error) {
      why = error.what();
      return nullptr;
    }
  });
  if (nvrtc == nullptr) return nullptr;
  why.clear();
  return *nvrtc;
}

}  // namespace kiln
