// Checks of a status and its message.
#pragma once

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <string>

#include "kiln/kiln.h"

namespace test {

inline void succeeds(kilnStatus_t status) {
  BOOST_TEST_REQUIRE(status == KILN_STATUS_SUCCESS, kilnGetErrorString(status)
                                                        << ": " << kilnGetLastErrorMessage());
}

inline void message_has(const char* part) {
  const std::string message = kilnGetLastErrorMessage();
  BOOST_TEST(message.find(part) != std::string::npos,
             "\"" << part << "\" is missing in: " << message);
}

// Checks that a call failed with `expected`, and that its message contains all parts: the field,
// its value, and what was expected.
inline void fails(kilnStatus_t status, kilnStatus_t expected,
                  std::initializer_list<const char*> parts) {
  const std::string message = kilnGetLastErrorMessage();
  BOOST_TEST(status == expected, kilnGetErrorString(status)
                                     << " instead of " << kilnGetErrorString(expected)
                                     << "; last message: " << message);
  for (const char* part : parts) message_has(part);
}

inline void bad_param(kilnStatus_t status, std::initializer_list<const char*> parts) {
  fails(status, KILN_STATUS_BAD_PARAM, parts);
}

}  // namespace test
