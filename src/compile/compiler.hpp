// Compilers: source text in, machine code out. They know nothing of operations.
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

  // The compiler's exact build, part of every cache key: content, never a place or a time. Cheap:
  // it loads nothing.
  virtual std::string identity() const = 0;

  // Name, release and file, for people: "NVRTC 13.0.88, /usr/local/cuda/lib64/libnvrtc.so.13". May
  // take a while.
  virtual std::string description() const = 0;

  // `name` is what diagnostics call the text. Throws COMPILE_FAILED (log, options and source in the
  // message) or NO_COMPILER. Safe to call from several threads at once.
  virtual Compiled compile(const std::string& source, const std::string& name,
                           const std::vector<std::string>& options) const = 0;
};

// The compilers' command-line options, in order. They are part of every cache key, so they are
// known without a compiler, for machines that have only the cache. quick_assembly: fewer of ptxas's
// optimizations; NVRTC before 12.9 has no such choice and leaves it out.
std::vector<std::string> nvrtc_options(const std::string& arch, bool quick_assembly = false);
std::vector<std::string> host_compiler_options();

// Null if there is none; `why` then says what was looked for and where.
std::shared_ptr<const Compiler> find_nvrtc(std::string& why);
std::shared_ptr<const Compiler> find_host_compiler(std::string& why);

}  // namespace kiln
