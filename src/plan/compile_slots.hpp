// How many compilers run at once in this process, whoever asks.
#pragma once

namespace kiln {

// KILN_COMPILE_THREADS, else one a CPU.
int compile_threads();
void set_compile_threads(int count);  // at least 1: `kiln prewarm -j`

// Waits for a slot, and has it for a scope.
class CompileSlot {
 public:
  CompileSlot();
  ~CompileSlot();
  CompileSlot(const CompileSlot&) = delete;
  CompileSlot& operator=(const CompileSlot&) = delete;
};

}  // namespace kiln
