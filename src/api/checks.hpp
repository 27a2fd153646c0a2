// Checks of what a C function is given.
#pragma once

#include <cstdint>

#include "core/error.hpp"

namespace kiln::api {

// First member of every opaque object: a handle of another kind, of garbage or (as a rule) of an
// object already destroyed does not carry the right mark.
class Mark {
 public:
  explicit Mark(std::uint32_t value) : value_(value) {}
  ~Mark() { clear(); }
  void clear() { value_ = 0; }
  bool is(std::uint32_t value) const { return value_ == value; }

 private:
  volatile std::uint32_t value_;  // so that the destructor's store stays
};

// The object behind a handle the caller gave as argument `name`. Throws BAD_PARAM.
template <class Object>
Object& checked(Object* object, const char* name) {
  if (object == nullptr) {
    fail(KILN_STATUS_BAD_PARAM, name, " is null; expected ", Object::kind, " from ",
         Object::creator);
  }
  if (!object->mark.is(Object::mark_value)) {
    fail(KILN_STATUS_BAD_PARAM, name, " is not ", Object::kind, "; expected one from ",
         Object::creator, " that was not destroyed");
  }
  return *object;
}

inline void check_pointer(const void* pointer, const char* name, const char* expected) {
  if (pointer == nullptr) {
    fail(KILN_STATUS_BAD_PARAM, name, " is null; expected ", expected);
  }
}

inline void check_at_least(std::int64_t least, std::int64_t value, const char* name) {
  if (value < least) {
    fail(KILN_STATUS_BAD_PARAM, name, " is ", value, "; expected at least ", least);
  }
}

}  // namespace kiln::api
