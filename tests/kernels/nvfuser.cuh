// What the kernels in nvFuser's style share: the struct of its arguments, in our own words.
#pragma once
#include "hopper.cuh"
typedef int nvfuser_index_t;

template <typename T, int N> struct Array {
    T array[N];
    INLINE T operator[](int i) const { return array[i]; }
};

template <typename T, int Dims, int AllocDims = Dims> struct Tensor {
    T* data;
    Array<nvfuser_index_t, Dims> logical_size;
    Array<nvfuser_index_t, AllocDims> alloc_stride;
    INLINE T& operator[](nvfuser_index_t i) const { return data[i]; }
};

// 16 bytes, or zeros where the predicate does not hold: these are written asynchronously, too.
INLINE void copy_or_clear(void* to, const void* from, bool predicate) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(predicate ? 16 : 0) : "memory");
}
INLINE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> INLINE void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
