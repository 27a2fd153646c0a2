// Counts what the calling thread allocates, by the C library's allocator and by operator new, of
// this program and of every shared library in it. Link allocation_count.cpp into the program.
#pragma once

namespace test {

// False in a sanitized build, whose allocator is the sanitizer's, and without the GNU C library.
extern const bool counts_allocations;

// Allocations of the calling thread so far; 0 where they are not counted.
long allocation_count();

}  // namespace test
