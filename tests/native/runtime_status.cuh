// Ends a function with status 1 where a call of the CUDA runtime fails, and prints the line.
#pragma once
#include <cstdio>
#include <cuda_runtime.h>

#define OK(call)                                                              \
    do {                                                                      \
        cudaError_t code = (call);                                            \
        if (code != cudaSuccess) {                                            \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(code)); \
            return 1;                                                         \
        }                                                                     \
    } while (0)
