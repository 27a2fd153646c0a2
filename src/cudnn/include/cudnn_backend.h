/* The graph API, under the name that it had up to version 8. */
#ifndef CUDNN_BACKEND_H
#define CUDNN_BACKEND_H

#include "cudnn_graph.h"

#endif /* CUDNN_BACKEND_H */
