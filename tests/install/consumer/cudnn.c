/* A program written to the cuDNN API, linked with what was installed for it. */
#include <cudnn.h>
#include <stdio.h>

int main(void) {
  cudnnHandle_t handle;
  const cudnnStatus_t status = cudnnCreate(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    char sentence[256];
    cudnnGetLastErrorString(sentence, sizeof sentence);
    fprintf(stderr, "%s: %s\n", cudnnGetErrorString(status), sentence);
    return 1;
  }
  return cudnnGetVersion() == CUDNN_VERSION && cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS ? 0 : 1;
}
