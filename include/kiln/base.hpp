// Shared by all parts of kiln.hpp: exceptions for statuses, owners of C objects, handles.
#ifndef KILN_BASE_HPP
#define KILN_BASE_HPP

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kiln/kiln.h"

namespace kiln {
inline namespace cxx {

// A status other than success; what() is the sentence that goes with it.
class Exception : public std::runtime_error {
 public:
  Exception(kilnStatus_t status, const char* message)
      : std::runtime_error(message), status_(status) {}
  kilnStatus_t status() const noexcept { return status_; }

 private:
  kilnStatus_t status_;
};

// check(kilnSetStream(handle.get(), stream));
inline void check(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) throw Exception(status, kilnGetLastErrorMessage());
}

// Owns one C object; movable, not copyable. get() is for C calls.
template <class Pointer, kilnStatus_t (*destroy)(Pointer)>
class Owner {
 public:
  Pointer get() const noexcept { return object_.get(); }

 protected:
  explicit Owner(Pointer object) noexcept : object_(object) {}

  // Owner(created([&](Pointer* out) { return kilnCreate...(out); }))
  template <class Create>
  static Pointer created(Create&& create) {
    Pointer object = nullptr;
    check(create(&object));
    return object;
  }

 private:
  struct Destroy {
    void operator()(Pointer object) const noexcept { destroy(object); }
  };
  std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy> object_;
};

class Handle : public Owner<kilnHandle_t, kilnDestroy> {
 public:
  explicit Handle(kilnDeviceKind_t kind, int ordinal = 0)
      : Owner(created([&](kilnHandle_t* out) { return kilnCreate(out, kind, ordinal); })) {}

  // A CUstream or cudaStream_t.
  void set_stream(void* stream) { check(kilnSetStream(get(), stream)); }
  void* stream() const {
    void* stream = nullptr;
    check(kilnGetStream(get(), &stream));
    return stream;
  }

  // Device memory that plans with a workspace limit may use. See kilnSetWorkspace.
  void set_workspace(void* workspace, std::size_t bytes) {
    check(kilnSetWorkspace(get(), workspace, bytes));
  }
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_BASE_HPP
