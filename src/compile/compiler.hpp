// Compilers turn source text into machine code. They know nothing about operations.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct Compiled {
  std::vector<std::byte> binary;  // cubin, or the host device's shared object
  std::string ptx;                // "" from the host compiler
  std::string log;                // warnings; "" if none
  double milliseconds = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;

  // Identifies the compiler's exact build, as a part of every cache key. It depends on the
  // compiler's content, never on a path or a time. Cheap: it loads no library.
  virtual std::string identity() const = 0;

  // Name, release and file, for people: "NVRTC 13.0.88, /usr/local/cuda/lib64/libnvrtc.so.13". May
  // read a large file.
  virtual std::string description() const = 0;

  // `name` is the file name of the text in diagnostics. Throws COMPILE_FAILED (see
  // fail_compilation()) or NO_COMPILER. Safe to call from several threads at once.
  virtual Compiled compile(const std::string& source, const std::string& name,
                           const std::vector<std::string>& options) const = 0;
};

// The compilers' command-line options, in order. They are part of every cache key, so they are the
// same without a compiler, on machines that have only the cache. quick_assembly: fewer of ptxas's
// optimizations; with NVRTC before 12.9, which has no such option, it is ignored.
std::vector<std::string> nvrtc_options(const std::string& arch, bool quick_assembly = false);
std::vector<std::string> host_compiler_options();

// The compiler; null if there is none, and `why` then says what was looked for and where.
std::shared_ptr<const Compiler> find_nvrtc(std::string& why);
std::shared_ptr<const Compiler> find_host_compiler(std::string& why);

}  // namespace kiln
