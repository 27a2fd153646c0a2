#define BOOST_TEST_MODULE kernel cache
#include <boost/test/unit_test.hpp>
