// All functions of cuDNN that kiln bench calls. They return an error; fake_cudnn.cpp replaces some.
#include "cli/bench/cudnn_api.hpp"

using kiln::cli::bench::cudnn::Descriptor;
using kiln::cli::bench::cudnn::Handle;

extern "C" {
#define KILN_REFUSE(name, parameters)                               \
  __attribute__((weak, visibility("default"))) int name parameters; \
  int name parameters { return 3000; }
KILN_CUDNN_FUNCTIONS(KILN_REFUSE)
}
