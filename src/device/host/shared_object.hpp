// A shared object that exists only in memory. It holds no descriptor once it is loaded, except in
// sanitized builds and with KILN_LINEINFO, where reports and debuggers read the file again.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln::host {

class SharedObject {
 public:
  // Loads the image. Throws EXECUTION_FAILED with the loader's message, or std::bad_alloc.
  explicit SharedObject(std::span<const std::byte> image);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  // The address of a symbol; null if there is none of this name.
  const void* symbol(const std::string& name) const;

 private:
  void close_all();
  bool open_from_memory(std::span<const std::byte> image, std::string& why);
  bool open_from_file(std::span<const std::byte> image, std::string& why);

  int memory_ = -1;  // the descriptor that stays open, or -1
  void* handle_ = nullptr;
};

}  // namespace kiln::host
