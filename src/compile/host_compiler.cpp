#include "compile/host_compiler.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <new>
#include <utility>

#include "compile/failure.hpp"
#include "compile/run_program.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/file_descriptor.hpp"
#include "core/process/per_process.hpp"
#include "core/process/temporary_folder.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

#ifdef KILN_SANITIZE
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::vector<std::byte> read_file(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  const ssize_t count = read(file.get(), bytes.data(), bytes.size());
  return count == status.st_size ? bytes : std::vector<std::byte>();
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
    folder.write("kernel.cpp", cat("#line 1 ", quoted(name), "\n", source));

    // The compiler runs inside the folder, whose random name must not enter the binary.
    std::vector<std::string> command = {path_};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {cat("-fdebug-prefix-map=", folder.path(), "=."), "-o",
                                   "kernel.so", "kernel.cpp", "-lm", "-lc"});
    ProgramResult result = run_program(command, folder.path());
    if (!result.started)
      fail(result.out_of_memory ? KILN_STATUS_ALLOC_FAILED : KILN_STATUS_NO_COMPILER,
           "the C++ compiler ", path_, " cannot be run: ", result.ending);

    Compiled compiled;
    if (result.succeeded) compiled.binary = read_file(folder.path() + "/kernel.so");
    if (compiled.binary.empty())
      fail_compilation(
          cat("the C++ compiler ", path_, " failed on ", name, " (", result.ending, ")"),
          result.output, options, source);
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

// The first line of the program's output; "", with `why` set, if it fails.
std::string first_line(const std::string& program, const char* question, std::string& why) {
  const ProgramResult answer = run_program({program, question});
  if (answer.out_of_memory) throw std::bad_alloc();
  std::string line = answer.output.substr(0, answer.output.find('\n'));
  if (answer.succeeded && !line.empty()) return line;
  why = cat(program, ": does not answer ", question, " (", answer.ending, ")");
  return "";
}

// A compiler's version without its name. gcc's version begins with the name that it was called by,
// which does not depend on the build.
std::string without_name(const std::string& version, const std::string& path) {
  const std::string name = fs::path(path).filename().string() + " ";
  return version.starts_with(name) ? "gcc " + version.substr(name.size()) : version;
}

std::shared_ptr<const Compiler> search(std::string& why) {
  const std::string& chosen = config().host_cxx;
  if (chosen.empty()) {
    const std::string candidates[] = {KILN_DEFAULT_HOST_CXX, "c++", "g++", "clang++"};
    return find_host_compiler_among(candidates, why);
  }
  auto compiler = find_host_compiler_among({&chosen, 1}, why);
  if (!compiler) why += " (KILN_HOST_CXX names it)";
  return compiler;
}

}  // namespace

std::vector<std::string> host_compiler_options() {
  std::vector<std::string> options = {
      // Line numbers for debuggers and sanitizer reports. Debug information of variables would make
      // compiling a fifth slower.
      "-std=c++20", "-g1", "-fno-var-tracking", "-fPIC", "-shared", "-pipe",
      // Compiling dominates small problems. -O2 takes a sixth longer than -O1 to compile and a
      // third less to run, which pays only for runs above some 100 ms. Tests compile with -Og,
      // which takes a third less than -O1 and costs their kernels some tenth. With the sanitizers
      // -O1 compiles nearly twice as long as -O0 and hides defects from them.
      cat("-O", sanitized ? "0" : config().host_optimization),
      // A kernel reads floats four at a time, as CUDA C++ allows.
      "-fno-strict-aliasing",
      // Each multiplication and each addition rounds, so that results are the same on every CPU.
      "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
      // Only the kernel's entry is exported, and the object can be unloaded.
      "-fvisibility=hidden",
      // No warnings: this compiler does not know `#pragma unroll` and other pragmas of CUDA.
      "-w"};
  if (sanitized)
    options.insert(options.end(), {"-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                                   "-fno-omit-frame-pointer"});
  else  // Kernels use nothing of C++'s library, in whose symbols half of the linker's time goes.
    options.emplace_back("-nodefaultlibs");
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
    std::string reason;
    const std::string version = first_line(path, "--version", reason);
    const std::string machine = version.empty() ? "" : first_line(path, "-dumpmachine", reason);
    if (!machine.empty())
      return std::make_shared<HostCompiler>(
          path, cat(without_name(version, path), " ", machine, sanitized ? " +asan" : ""));
    reasons.push_back(reason);
  }
  why = cat("no C++ compiler: ", join(reasons, "; "));
  return nullptr;
}

std::shared_ptr<const Compiler> find_host_compiler(std::string& why) {
  static constinit Once<std::shared_ptr<const Compiler>> found("host compiler");
  const auto* const compiler = found.get_if([&] {
    auto first = search(why);
    return first ? std::make_unique<std::shared_ptr<const Compiler>>(std::move(first)) : nullptr;
  });
  if (compiler == nullptr) return nullptr;
  why.clear();
  return *compiler;
}

}  // namespace kiln
