// Tensor maps that a kernel builds in shared memory, for the kernels of twins/ and clean/.
#pragma once
#include "hopper.cuh"

// A map of 128 bytes, as one word for each lane of a warp.
struct alignas(128) SharedMap {
    u32 words[32];
};

#define REPLACE(field, type, constraint, map, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" ::"r"(shared(map)), constraint(value) : "memory")
#define REPLACE_AT(field, type, constraint, map, ordinal, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " #ordinal ", %1;" \
                 ::"r"(shared(map)), constraint(value) : "memory")

// The number of elements of dimension 0 (word 8) and of dimension 1 (word 9), which the map keeps less one.
INLINE void set_width(SharedMap* map, u32 width) { REPLACE_AT("global_dim", "b32", "r", map, 0, width); }
INLINE void set_height(SharedMap* map, u32 height) { REPLACE_AT("global_dim", "b32", "r", map, 1, height); }

// A matrix of floats that is one box.
INLINE void describe(SharedMap* map, const float* matrix, u32 width, u32 height) {
    u64 address = __cvta_generic_to_global(matrix), stride = 4 * width;
    u32 rank = 1, step = 1;
    REPLACE("global_address", "b64", "l", map, address);
    REPLACE("rank", "b32", "r", map, rank);
    set_width(map, width);
    set_height(map, height);
    REPLACE_AT("box_dim", "b32", "r", map, 0, width);
    REPLACE_AT("box_dim", "b32", "r", map, 1, height);
    REPLACE_AT("global_stride", "b64", "l", map, 0, stride);
    REPLACE_AT("element_stride", "b32", "r", map, 0, step);
    REPLACE_AT("element_stride", "b32", "r", map, 1, step);
    REPLACE("elemtype", "b32", "n", map, 7);
    REPLACE("interleave_layout", "b32", "n", map, 0);
    REPLACE("swizzle_mode", "b32", "n", map, 0);
    REPLACE("fill_mode", "b32", "n", map, 0);
}

// By a whole warp.
INLINE void publish(void* to, const SharedMap* map) {
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 ::"l"(__cvta_generic_to_global(to)), "r"(shared(map)) : "memory");
}
INLINE void acquire(const void* map) { asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory"); }
INLINE void release() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }
INLINE void set_address(void* map, const void* matrix) {  // of a map in global memory
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;"
                 ::"l"(__cvta_generic_to_global(map)), "l"(__cvta_generic_to_global(matrix)) : "memory");
}

// A flag in global memory, by one thread; the others of the CTA wait for the one that sees it.
INLINE void set_flag(u32* flag) { asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory"); }
INLINE void see_flag(const u32* flag) {
    u32 seen = 0;
    if (threadIdx.x == 0)
        while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    __syncthreads();
}
