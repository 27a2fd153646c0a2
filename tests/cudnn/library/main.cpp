#define BOOST_TEST_MODULE cudnn_library
#include <boost/test/unit_test.hpp>
