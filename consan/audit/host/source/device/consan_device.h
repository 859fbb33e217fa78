// Included before each source of the device: names that kernels take from headers of the host.
#pragma once
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_LOG2E 1.4426950408889634074
#define M_2_SQRTPI 1.12837916709551257390
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_PI_2 1.57079632679489661923
#define M_LN2 0.69314718055994530942
#endif
#ifndef CUDA_VERSION // of cuda.h
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
#ifndef RAND_MAX
#define RAND_MAX 2147483647
#endif
// What nvcc takes and NVRTC does not.
#define __asm__ asm
#define __volatile__ volatile
#define register
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long ulong;
// Functions of the host's compiler, which nvcc knows in functions of both sides.
constexpr int __builtin_popcountll(unsigned long long x) { return x ? int(x & 1) + __builtin_popcountll(x >> 1) : 0; }
constexpr int __builtin_clzll(unsigned long long x) { return x >> 63 ? 0 : 1 + __builtin_clzll(x << 1 | 1); }
constexpr int __builtin_ctzll(unsigned long long x) { return x & 1 ? 0 : 1 + __builtin_ctzll(x >> 1 | 1ull << 63); }
constexpr int __builtin_popcount(unsigned x) { return __builtin_popcountll(x); }
constexpr int __builtin_clz(unsigned x) { return __builtin_clzll(x) - 32; }
constexpr int __builtin_ctz(unsigned x) { return __builtin_ctzll(x); }
// The shuffles and votes of before Volta, of the lanes that run together.
template <class T> __device__ T __shfl(T value, int lane, int width = 32) { return __shfl_sync(__activemask(), value, lane, width); }
template <class T> __device__ T __shfl_up(T value, unsigned by, int width = 32) { return __shfl_up_sync(__activemask(), value, by, width); }
template <class T> __device__ T __shfl_down(T value, unsigned by, int width = 32) { return __shfl_down_sync(__activemask(), value, by, width); }
template <class T> __device__ T __shfl_xor(T value, int mask, int width = 32) { return __shfl_xor_sync(__activemask(), value, mask, width); }
inline __device__ unsigned __ballot(int predicate) { return __ballot_sync(__activemask(), predicate); }
inline __device__ int __any(int predicate) { return __any_sync(__activemask(), predicate); }
inline __device__ int __all(int predicate) { return __all_sync(__activemask(), predicate); }
// Programmatic dependent launches: NVRTC has no runtime of the device.
inline __device__ void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
inline __device__ void cudaTriggerProgrammaticLaunchCompletion() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
