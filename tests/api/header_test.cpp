// The header as a C compiler sees it; header_c99.c names all of its functions.
#include <boost/test/unit_test.hpp>

using AnyFunction = void (*)();
extern "C" int kiln_test_declared_functions(const AnyFunction** functions);

BOOST_AUTO_TEST_CASE(every_declared_function_is_in_the_library) {
  const AnyFunction* functions = nullptr;
  const int count = kiln_test_declared_functions(&functions);
  BOOST_TEST(count == 151);
  for (int i = 0; i < count; ++i) BOOST_TEST((functions[i] != nullptr));
}
