// What cuda_runtime.h needs of a header that only CUDA's toolkit has: the words of CUDA C++ for the compiler of the host.
#pragma once
#define __host__
#define __device__
#define __global__ __attribute__((noinline, used))
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __noinline__ // libstdc++ writes __attribute__((__noinline__))
#define __no_return__ __attribute__((noreturn))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __thread__ __thread
#define __import__
#define __export__
#define __cdecl
#define __annotate__(a)
#define __location__(a)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __specialization_static static
#define __storage_auto__(x)
#define CUDARTAPI
#define CUDARTAPI_CDECL
