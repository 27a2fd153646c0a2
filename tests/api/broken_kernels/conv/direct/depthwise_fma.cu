// In the place of the library's file of this name (stand_in_test.cpp).
#error "this kernel is broken"
