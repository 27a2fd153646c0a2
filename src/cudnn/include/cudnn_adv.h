/* Recurrent networks, attention, CTC loss. */
#ifndef CUDNN_ADV_H
#define CUDNN_ADV_H

#include "cudnn_ops.h"
#include "kiln_cudnn/attention.h"
#include "kiln_cudnn/rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnAdvVersionCheck(void);

#ifdef __cplusplus
}
#endif

#endif /* CUDNN_ADV_H */
