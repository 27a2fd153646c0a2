// Bounds the number of compilers that run at once in this process.
#pragma once

namespace kiln {

// KILN_COMPILE_THREADS if set, else the number of CPUs.
int compile_threads();
void set_compile_threads(int count);  // at least 1; for `kiln prewarm -j`

// Waits for a slot and holds it for the object's lifetime.
class CompileSlot {
 public:
  CompileSlot();
  ~CompileSlot();
  CompileSlot(const CompileSlot&) = delete;
  CompileSlot& operator=(const CompileSlot&) = delete;
};

}  // namespace kiln
