// A library to be measured against, opened at run time: nothing of it is needed to build Kiln.
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

  // Who solves the case, or a refusal with the peer's own status. They may hold on to `operands`
  // and to memory of the peer's, which the next call uses again.
  virtual std::vector<Contestant> contestants(const Case& item, Operands& operands,
                                              RandomPool& pool) = 0;
};

// `path`: the file to open; "": as found by the loader, or where toolkits and wheels put it. The
// device must be current. Throw NO_DEVICE with all that was tried, or EXECUTION_FAILED.
std::unique_ptr<Peer> open_cudnn(Device& device, const std::string& path);
std::unique_ptr<Peer> open_cublas(Device& device, const std::string& path);

Contestant refusal(std::vector<std::string> roles, const std::string& reason);

// A shared library, and functions in it.
class SharedLibrary {
 public:
  // The first of `names` that opens. Throws NO_DEVICE with all that was tried.
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
