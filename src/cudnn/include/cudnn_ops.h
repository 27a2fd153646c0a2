/* Operations on tensors, and layers without weights. */
#ifndef CUDNN_OPS_H
#define CUDNN_OPS_H

#include "cudnn_graph.h"
#include "kiln_cudnn/dropout.h"
#include "kiln_cudnn/filter.h"
#include "kiln_cudnn/layers.h"
#include "kiln_cudnn/normalization.h"
#include "kiln_cudnn/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnOpsVersionCheck(void);

#ifdef __cplusplus
}
#endif

#endif /* CUDNN_OPS_H */
