// What the kernels of several ranks share: the buffers of all ranks as parameters, signals between them, and a barrier.
#pragma once
typedef unsigned u32;
#define N 32  // threads of a CTA, and values of a rank
#ifndef SCOPE
#define SCOPE "sys"
#endif

#if RANKS == 2
#define PEERS(type, name) type *name##0, type *name##1
#define LIST(type, name) type *name[] = {name##0, name##1}
#else
#define PEERS(type, name) type *name##0, type *name##1, type *name##2, type *name##3
#define LIST(type, name) type *name[] = {name##0, name##1, name##2, name##3}
#endif

__device__ void put(u32 *signal, u32 value) { asm volatile("st.release." SCOPE ".global.u32 [%0], %1;" ::"l"(signal), "r"(value) : "memory"); }
__device__ void put_relaxed(u32 *signal, u32 value) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(signal), "r"(value) : "memory"); }
__device__ u32 get(u32 *signal) {
    u32 value;
    asm volatile("ld.acquire." SCOPE ".global.u32 %0, [%1];" : "=r"(value) : "l"(signal) : "memory");
    return value;
}
__device__ u32 swap(u32 *signal, u32 old, u32 value) {
    u32 found;
    asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;" : "=r"(found) : "l"(signal), "r"(old), "r"(value) : "memory");
    return found;
}
__device__ bool reached(u32 seen, u32 value) { return (int)(seen - value) >= 0; }

// All ranks come to a value. Slot k of a rank's signals is what rank k has sent it.
__device__ void barrier(u32 **signals, int rank, u32 value) {
    __syncthreads();
    if (threadIdx.x < RANKS) {
        put(signals[threadIdx.x] + rank, value);
        while (!reached(get(signals[rank] + threadIdx.x), value)) {}
    }
    __syncthreads();
}
