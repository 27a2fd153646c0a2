// The program's own folder, and the compiler in it.
#pragma once

#include <string>

namespace test {

const std::string& folder();
void remove_folder();

// The machine's C++ compiler. While it is slow it says when it has begun, and takes two seconds
// longer.
std::string compiler();
void make_compiler_slow(bool slow);

// A compiler that compiles its first kernel, and then gives out copies of it. It takes no time.
std::string copying_compiler();

void wait_until_compiler_begins();

}  // namespace test
