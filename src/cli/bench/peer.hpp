// A library that Kiln is compared with. It is opened at run time and not needed to build Kiln.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/bench/operands.hpp"

namespace kiln::cli::bench {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual const char* name() const = 0;
  virtual std::string version() const = 0;  // and where it was found

  // The contestants for the case, or one with a refusal that has the peer's own status. They refer
  // to `operands`, and to memory of the peer that the next call uses again.
  virtual std::vector<Contestant> contestants(const Case& item, Operands& operands,
                                              RandomPool& pool) = 0;
};

// Open a peer. path: the file to open; "": searches where the loader looks and where toolkits and
// wheels put it. The device must be current. Throw NO_DEVICE with all paths that were tried, or
// EXECUTION_FAILED.
std::unique_ptr<Peer> open_cudnn(Device& device, const std::string& path);
std::unique_ptr<Peer> open_cublas(Device& device, const std::string& path);

Contestant refusal(std::vector<std::string> roles, const std::string& reason);

// A shared library and its functions.
class SharedLibrary {
 public:
  // Opens `path`, or if it is "" the first of `names` that can be opened. option: the command-line
  // option for the path, for the message. Throws NO_DEVICE with all paths that were tried.
  SharedLibrary(const std::string& path, const std::vector<std::string>& names,
                const std::string& option);

  const std::string& path() const { return path_; }

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;  // throws NO_DEVICE

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace kiln::cli::bench
