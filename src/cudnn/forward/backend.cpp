// Attributes of the graph API. Where an attribute is a handle, the real library gets its own.
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

// Attributes that are handles are refused: the real library would return its own handle, which
// Kiln's functions do not accept.
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
