/* The version of the cuDNN API that these headers declare. All functions of this version are
 * declared; a higher number would make cudnn-frontend call functions of 9.22, which are not.
 * Functions that versions 8 and 9 removed and programs still use are declared as well
 * (kiln_cudnn/removed.h). */
#ifndef CUDNN_VERSION_H
#define CUDNN_VERSION_H

#define CUDNN_MAJOR 9
#define CUDNN_MINOR 21
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)

#define CUDNN_MAX_SM_MAJOR_NUMBER 12
#define CUDNN_MAX_SM_MINOR_NUMBER 1
#define CUDNN_MAX_DEVICE_VERSION (CUDNN_MAX_SM_MAJOR_NUMBER * 100 + CUDNN_MAX_SM_MINOR_NUMBER * 10)

/* Programs can test this macro to see that the headers are Kiln's. */
#define KILN_CUDNN 1

#endif /* CUDNN_VERSION_H */
