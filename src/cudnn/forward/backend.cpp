// Attributes of the graph API, of which some are handles: the library behind wants its own.
#include <vector>

#include "cudnn/forward/refused.hpp"
#include "cudnn/forward/translate.hpp"

using kiln::cudnn::forward;
using kiln::cudnn::forwards;
using kiln::cudnn::Function;
using kiln::cudnn::refuse;

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t elementCount, const void* arrayOfElements) {
  static std::atomic<bool> told{false};
  if (!forwards()) return refuse(__func__, "graph API", told);
  std::vector<cudnnHandle_t> real;
  if (attributeType == CUDNN_TYPE_HANDLE && arrayOfElements != nullptr) {
    const cudnnStatus_t status = kiln::cudnn::guarded([&] {
      const auto* const handles = static_cast<const cudnnHandle_t*>(arrayOfElements);
      for (std::int64_t i = 0; i < elementCount; ++i)
        real.push_back(kiln::cudnn::real_of(handles[i]));
    });
    if (status != CUDNN_STATUS_SUCCESS) return status;
    arrayOfElements = real.data();
  }
  return forward(Function(cudnnBackendSetAttribute), descriptor, attributeName, attributeType,
                 elementCount, arrayOfElements);
}

// The library behind would give its own handle, which no other function takes.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t requestedElementCount, int64_t* elementCount,
                                       void* arrayOfElements) {
  static std::atomic<bool> told{false};
  if (attributeType == CUDNN_TYPE_HANDLE || !forwards()) return refuse(__func__, "graph API", told);
  return forward(Function(cudnnBackendGetAttribute), descriptor, attributeName, attributeType,
                 requestedElementCount, elementCount, arrayOfElements);
}
