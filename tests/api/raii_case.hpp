// What the tests of kiln.hpp share.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/operations/convolution_case.hpp"
#include "kiln/kiln.hpp"

namespace test::raii {

inline constexpr auto f32 = KILN_DATA_FLOAT;
inline constexpr auto f64 = KILN_DATA_DOUBLE;
inline constexpr auto nchw = KILN_TENSOR_NCHW;

template <class T>
void equals(const test::Buffer<T>& got, const std::vector<T>& expected) {
  BOOST_TEST(got.read() == expected, boost::test_tools::per_element());
}

template <class Call>
void throws(const Call& call, kilnStatus_t status, const char* part) {
  BOOST_CHECK_EXCEPTION(call(), kiln::Exception, [&](const kiln::Exception& error) {
    BOOST_TEST_INFO(error.what());
    return error.status() == status && std::string(error.what()).find(part) != std::string::npos;
  });
}

// Executes a plan of one operation, then the immediate call on a fresh result.
template <class Operation, class T, class... Scalars>
void check_twice(const kiln::Handle& handle, const typename Operation::Descriptors& descriptors,
                 const typename Operation::Operands& operands, const test::Buffer<T>& result,
                 const std::vector<T>& expected, const Scalars&... scalars) {
  const std::vector<T> before = result.read();
  Operation made(handle, descriptors);
  made.finalize();
  const Operation plan = std::move(made);
  plan.execute(handle, operands, scalars...);
  equals(result, expected);
  test::copy_in(result.data(), before.data(), before.size() * sizeof(T));
  Operation::run(handle, descriptors, operands, scalars...);
  equals(result, expected);
}

}  // namespace test::raii
