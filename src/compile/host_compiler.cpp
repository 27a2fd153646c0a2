#include "compile/host_compiler.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "compile/run_program.hpp"
#include "core/config.hpp"
#include "core/error.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

#ifdef KILN_SANITIZE
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// A folder of its own for one compilation, gone afterwards however that ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = cat(parent && *parent ? parent : "/tmp", "/kiln-compile-XXXXXX");
    if (!mkdtemp(path_.data()))
      fail(KILN_STATUS_COMPILE_FAILED, "no temporary folder ", path_,
           " for the host compiler: ", std::strerror(errno));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(content.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), content.data(), content.size());
  return bytes;
}

class HostCompiler : public Compiler {
 public:
  HostCompiler(std::string path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {}

  std::string identity() const override { return identity_; }
  std::string description() const override { return cat(identity_, ", ", path_); }

  Compiled compile(const std::string& source, const std::string& name,
                   const std::vector<std::string>& options) const override {
    const auto begin = std::chrono::steady_clock::now();
    const TemporaryFolder folder;
    const std::string input = folder.path() + "/kernel.cpp";
    if (std::ofstream file(input, std::ios::binary); !(file << "#line 1 " << quoted(name) << "\n"
                                                            << source << std::flush))
      fail(KILN_STATUS_COMPILE_FAILED, "the source of ", name, " cannot be written to ", input);

    // The folder's name is chance and must not enter the binary: the compiler runs inside it.
    std::vector<std::string> command = {path_};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {cat("-fdebug-prefix-map=", folder.path(), "=."), "-o",
                                   "kernel.so", "kernel.cpp"});
    ProgramResult result = run_program(command, folder.path());
    if (!result.started)
      fail(KILN_STATUS_NO_COMPILER, "the C++ compiler ", path_, " cannot be run: ", result.ending);

    Compiled compiled;
    if (result.succeeded) compiled.binary = read_file(folder.path() + "/kernel.so");
    if (compiled.binary.empty())
      fail(KILN_STATUS_COMPILE_FAILED, "the C++ compiler ", path_, " failed on ", name, " (",
           result.ending, ")\n---- log\n", result.output, "---- options\n", join(options, " "),
           "\n---- source\n", source);
    compiled.log = std::move(result.output);
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    compiled.milliseconds = elapsed.count();
    return compiled;
  }

 private:
  std::string path_;
  std::string identity_;
};

std::optional<std::string> first_line(const std::string& program, const char* question) {
  const ProgramResult answer = run_program({program, question});
  std::string line = answer.output.substr(0, answer.output.find('\n'));
  if (!answer.succeeded || line.empty()) return std::nullopt;
  return line;
}

// gcc begins its version with the name that it was called by, which is a place and no build.
std::string without_name(const std::string& version, const std::string& path) {
  const std::string name = fs::path(path).filename().string() + " ";
  return version.starts_with(name) ? "gcc " + version.substr(name.size()) : version;
}

struct Found {
  std::shared_ptr<const Compiler> compiler;
  std::string why;
};

Found find_once() {
  std::vector<std::string> candidates;
  if (const std::string& chosen = config().host_cxx; !chosen.empty()) {
    candidates = {chosen};
  } else {
    candidates = {KILN_DEFAULT_HOST_CXX, "c++", "g++", "clang++"};
  }
  Found found;
  found.compiler = find_host_compiler_among(candidates, found.why);
  if (!found.compiler && !config().host_cxx.empty()) found.why += " (KILN_HOST_CXX names it)";
  return found;
}

}  // namespace

std::vector<std::string> host_compiler_options() {
  std::vector<std::string> options = {
      // Lines, for debuggers and reports; where variables are would cost a fifth more.
      "-std=c++20", "-g1", "-fno-var-tracking", "-fPIC", "-shared", "-pipe",
      // Compiling is most of what a small problem costs. -O2 takes a sixth longer than -O1, and
      // saves a third of the run, which would pay only from some 100 ms of running on. With the
      // sanitizers -O1 takes nearly twice as long as -O0, and hides defects from them.
      sanitized ? "-O0" : "-O1",
      // A kernel reads floats four at a time, as CUDA C++ allows.
      "-fno-strict-aliasing",
      // Each multiplication and each addition rounds; the same on every CPU.
      "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
      // Only the kernel's entry is seen, and the object can be unloaded.
      "-fvisibility=hidden",
      // `#pragma unroll` and the like are not for this compiler.
      "-w"};
  if (sanitized)
    options.insert(options.end(), {"-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                                   "-fno-omit-frame-pointer"});
  return options;
}

std::shared_ptr<const Compiler> find_host_compiler_among(std::span<const std::string> candidates,
                                                         std::string& why) {
  std::vector<std::string> reasons;
  for (const std::string& candidate : candidates) {
    const std::string path = find_program(candidate);
    if (path.empty()) {
      const bool has_folder = candidate.find('/') != std::string::npos;
      reasons.push_back(
          cat(candidate, has_folder ? ": no such executable file" : ": not found on PATH"));
      continue;
    }
    const auto version = first_line(path, "--version");
    const auto machine = version ? first_line(path, "-dumpmachine") : std::nullopt;
    if (machine)
      return std::make_shared<HostCompiler>(
          path, cat(without_name(*version, path), " ", *machine, sanitized ? " +asan" : ""));
    reasons.push_back(cat(path, ": does not answer --version and -dumpmachine"));
  }
  why = cat("no C++ compiler: ", join(reasons, "; "));
  return nullptr;
}

std::shared_ptr<const Compiler> find_host_compiler(std::string& why) {
  static const Found found = find_once();
  if (!found.compiler) why = found.why;
  return found.compiler;
}

}  // namespace kiln
