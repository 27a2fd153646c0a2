// The one exception of the library. Everything inside throws it; the C API turns it into a status.
#pragma once

#include <stdexcept>
#include <string>

#include "core/text.hpp"
#include "kiln/kiln.h"

namespace kiln {

class Error : public std::runtime_error {
 public:
  Error(kilnStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  kilnStatus_t status() const { return status_; }

 private:
  kilnStatus_t status_;
};

// fail(KILN_STATUS_BAD_PARAM, "stride[", i, "] is ", value, "; expected at least 1")
template <class... Parts>
[[noreturn]] void fail(kilnStatus_t status, const Parts&... parts) {
  throw Error(status, cat(parts...));
}

}  // namespace kiln
