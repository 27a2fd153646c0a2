// Attributes of the graph API, of which some are handles: the library behind wants its own.
#include <algorithm>
#include <vector>

#include "cudnn/forward/translate.hpp"

using kiln::cudnn::Function;
using kiln::cudnn::serve;

namespace {

[[noreturn]] void refuse() {
  kiln::fail(KILN_STATUS_NOT_SUPPORTED,
             "Kiln has no graph API; expected a function that it serves, or KILN_CUDNN_FORWARD");
}

}  // namespace

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t elementCount, const void* arrayOfElements) {
  std::vector<cudnnHandle_t> real;
  if (attributeType == CUDNN_TYPE_HANDLE && arrayOfElements != nullptr && kiln::cudnn::forwards()) {
    const cudnnStatus_t status = kiln::cudnn::guarded([&] {
      const auto* const handles = static_cast<const cudnnHandle_t*>(arrayOfElements);
      for (std::int64_t i = 0; i < elementCount; ++i)
        real.push_back(kiln::cudnn::real_of(handles[i]));
    });
    if (status != CUDNN_STATUS_SUCCESS) return status;
    arrayOfElements = real.data();
  }
  return serve(Function(cudnnBackendSetAttribute), refuse, descriptor, attributeName, attributeType,
               elementCount, arrayOfElements);
}

// The library behind would give its own handle, which no other function takes.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t requestedElementCount, int64_t* elementCount,
                                       void* arrayOfElements) {
  if (attributeType == CUDNN_TYPE_HANDLE) return kiln::cudnn::guarded(refuse);
  return serve(Function(cudnnBackendGetAttribute), refuse, descriptor, attributeName, attributeType,
               requestedElementCount, elementCount, arrayOfElements);
}
