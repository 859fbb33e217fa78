// NVSHMEM's device functions for launches of several ranks under consan (tutorials/guide/ranks.md): the memory of all ranks is in one machine,
// so a put is made by stores of the calling thread. Their order is that of the NVSHMEM specification, not that of stores: what sets a signal
// or a flag is relaxed, unless the specification orders it. A put becomes visible by fence, quiet, or the signal of its own put_signal.
// consan gives the last environment registers a meaning (instrument/rewriting/ranked.py): this header is of no use without it.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { NVSHMEM_CMP_EQ = 0, NVSHMEM_CMP_NE, NVSHMEM_CMP_GT, NVSHMEM_CMP_LE, NVSHMEM_CMP_LT, NVSHMEM_CMP_GE };
enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };

typedef int32_t nvshmem_team_t;
enum { NVSHMEM_TEAM_INVALID = -1, NVSHMEM_TEAM_WORLD = 0, NVSHMEM_TEAM_SHARED = 1, NVSHMEMX_TEAM_NODE = 2 };

#define CONSAN_DEVICE static __device__ __forceinline__

CONSAN_DEVICE int nvshmem_my_pe() {
    int rank;
    asm volatile("mov.b32 %0, %%envreg29;" : "=r"(rank));
    return rank;
}
CONSAN_DEVICE int nvshmem_n_pes() {
    int ranks;
    asm volatile("mov.b32 %0, %%envreg30;" : "=r"(ranks));
    return ranks;
}
// The memory of the ranks lies at equal distances.
CONSAN_DEVICE void *consan_there(const void *own, int pe) {
    int stride;
    asm volatile("mov.b32 %0, %%envreg31;" : "=r"(stride));
    return (char *)own + (pe - nvshmem_my_pe()) * (long long)stride;
}
CONSAN_DEVICE void *nvshmem_ptr(const void *own, int pe) {
    asm volatile("// nvshmem: ptr");
    return consan_there(own, pe);
}

// Teams: the three that have all ranks. With another one the launch ends there.
CONSAN_DEVICE void consan_check_team(nvshmem_team_t team) {
    if (team < NVSHMEM_TEAM_WORLD || team > NVSHMEMX_TEAM_NODE) __trap();
}
CONSAN_DEVICE int nvshmem_team_my_pe(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_INVALID) return -1;
    consan_check_team(team);
    return nvshmem_my_pe();
}
CONSAN_DEVICE int nvshmem_team_n_pes(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_INVALID) return -1;
    consan_check_team(team);
    return nvshmem_n_pes();
}
CONSAN_DEVICE int nvshmem_team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
    if (from == NVSHMEM_TEAM_INVALID || to == NVSHMEM_TEAM_INVALID) return -1;
    consan_check_team(from), consan_check_team(to);
    return pe < 0 || pe >= nvshmem_n_pes() ? -1 : pe;
}

// What is put before, and is not behind a fence, is not ordered by these.
CONSAN_DEVICE void consan_set(uint64_t *at, uint64_t value) { asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory"); }
CONSAN_DEVICE void consan_add(uint64_t *at, uint64_t value) { asm volatile("red.relaxed.sys.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory"); }
CONSAN_DEVICE void nvshmem_fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
CONSAN_DEVICE void nvshmem_quiet() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Threads `first`, `first + step`, ... of a group copy.
CONSAN_DEVICE void consan_copy(void *to, const void *from, size_t bytes, unsigned first, unsigned step) {
    bool words = ((size_t)to | (size_t)from | bytes) % 4 == 0;
    if (words)
        for (size_t at = first; at < bytes / 4; at += step) ((unsigned *)to)[at] = ((const unsigned *)from)[at];
    else
        for (size_t at = first; at < bytes; at += step) ((char *)to)[at] = ((const char *)from)[at];
}
CONSAN_DEVICE void consan_signal(uint64_t *own, uint64_t value, int op, int pe) {
    uint64_t *there = (uint64_t *)consan_there(own, pe);
    if (op == NVSHMEM_SIGNAL_ADD)
        consan_add(there, value);
    else
        consan_set(there, value);
}

CONSAN_DEVICE void nvshmem_putmem(void *to, const void *from, size_t bytes, int pe) {
    asm volatile("// nvshmem: put");
    consan_copy(consan_there(to, pe), from, bytes, 0, 1);
}
CONSAN_DEVICE void nvshmem_putmem_nbi(void *to, const void *from, size_t bytes, int pe) { nvshmem_putmem(to, from, bytes, pe); }
CONSAN_DEVICE void nvshmem_getmem(void *to, const void *from, size_t bytes, int pe) { consan_copy(to, consan_there(from, pe), bytes, 0, 1); }
CONSAN_DEVICE void nvshmem_putmem_signal(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {
    asm volatile("// nvshmem: put with signal");
    consan_copy(consan_there(to, pe), from, bytes, 0, 1);
    nvshmem_fence();
    consan_signal(signal, value, op, pe);
}
CONSAN_DEVICE void nvshmem_putmem_signal_nbi(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {
    nvshmem_putmem_signal(to, from, bytes, signal, value, op, pe);
}

#define CONSAN_THREADS (blockDim.x * blockDim.y * blockDim.z)
#define CONSAN_THREAD ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)
#define CONSAN_OF_GROUP(suffix, thread, threads, sync)                                                                                       \
    CONSAN_DEVICE void nvshmemx_putmem##suffix(void *to, const void *from, size_t bytes, int pe) {                                           \
        asm volatile("// nvshmem: put");                                                                                                     \
        sync;                                                                                                                                \
        consan_copy(consan_there(to, pe), from, bytes, thread, threads);                                                                      \
        sync;                                                                                                                                \
    }                                                                                                                                        \
    CONSAN_DEVICE void nvshmemx_getmem##suffix(void *to, const void *from, size_t bytes, int pe) {                                           \
        sync;                                                                                                                                \
        consan_copy(to, consan_there(from, pe), bytes, thread, threads);                                                                      \
        sync;                                                                                                                                \
    }                                                                                                                                        \
    CONSAN_DEVICE void nvshmemx_getmem_nbi##suffix(void *to, const void *from, size_t bytes, int pe) { nvshmemx_getmem##suffix(to, from, bytes, pe); } \
    CONSAN_DEVICE void nvshmemx_putmem_nbi##suffix(void *to, const void *from, size_t bytes, int pe) { nvshmemx_putmem##suffix(to, from, bytes, pe); } \
    CONSAN_DEVICE void nvshmemx_putmem_signal##suffix(                                                                                       \
        void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {                                        \
        asm volatile("// nvshmem: put with signal");                                                                                         \
        sync;                                                                                                                                \
        consan_copy(consan_there(to, pe), from, bytes, thread, threads);                                                                      \
        sync;                                                                                                                                \
        if (thread == 0) nvshmem_fence(), consan_signal(signal, value, op, pe);                                                              \
    }                                                                                                                                        \
    CONSAN_DEVICE void nvshmemx_putmem_signal_nbi##suffix(                                                                                   \
        void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {                                        \
        nvshmemx_putmem_signal##suffix(to, from, bytes, signal, value, op, pe);                                                              \
    }
CONSAN_OF_GROUP(_warp, CONSAN_THREAD % 32, 32, __syncwarp())
CONSAN_OF_GROUP(_block, CONSAN_THREAD, CONSAN_THREADS, __syncthreads())

CONSAN_DEVICE void nvshmemx_signal_op(uint64_t *signal, uint64_t value, int op, int pe) { consan_signal(signal, value, op, pe); }
CONSAN_DEVICE uint64_t nvshmem_signal_fetch(uint64_t *signal) {
    uint64_t seen;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(signal) : "memory");
    return seen;
}

template <typename T> CONSAN_DEVICE bool consan_holds(T seen, int cmp, T value) {
    switch (cmp) {
    case NVSHMEM_CMP_EQ: return seen == value;
    case NVSHMEM_CMP_NE: return seen != value;
    case NVSHMEM_CMP_GT: return seen > value;
    case NVSHMEM_CMP_LE: return seen <= value;
    case NVSHMEM_CMP_LT: return seen < value;
    default: return seen >= value;
    }
}
CONSAN_DEVICE uint64_t nvshmem_signal_wait_until(uint64_t *signal, int cmp, uint64_t value) {
    uint64_t seen;
    do seen = nvshmem_signal_fetch(signal);
    while (!consan_holds(seen, cmp, value));
    return seen;
}

// Barriers. All ranks come to the next one: each tells all others its number. A row of counters for each rank: what each has told it, and
// how many barriers it has begun. One thread of a rank is in a barrier at a time (NVSHMEM, "Collective Communication").
CONSAN_DEVICE uint64_t *consan_counters(int pe) {
    unsigned low, high;
    asm volatile("mov.b32 %0, %%envreg27;" : "=r"(low));
    asm volatile("mov.b32 %0, %%envreg28;" : "=r"(high));
    return (uint64_t *)((size_t)high << 32 | low) + pe * (nvshmem_n_pes() + 1);
}
CONSAN_DEVICE void consan_meet() {
    int me = nvshmem_my_pe(), ranks = nvshmem_n_pes();
    uint64_t *own = consan_counters(me), before;
    asm volatile("atom.relaxed.sys.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(own + ranks) : "memory");
    nvshmem_quiet();
    for (int pe = 0; pe < ranks; ++pe) consan_set(consan_counters(pe) + me, before + 1);
    for (int pe = 0; pe < ranks; ++pe) nvshmem_signal_wait_until(own + pe, NVSHMEM_CMP_GE, before + 1);
}
#define CONSAN_BARRIERS(prefix, suffix, thread, sync)                                                                                        \
    CONSAN_DEVICE void prefix##_barrier_all##suffix() {                                                                                      \
        sync;                                                                                                                                \
        if (thread == 0) consan_meet();                                                                                                      \
        sync;                                                                                                                                \
    }                                                                                                                                        \
    CONSAN_DEVICE int prefix##_barrier##suffix(nvshmem_team_t team) { return consan_check_team(team), prefix##_barrier_all##suffix(), 0; }     \
    CONSAN_DEVICE void prefix##_sync_all##suffix() {                                                                                         \
        asm volatile("// nvshmem: sync");                                                                                                    \
        prefix##_barrier_all##suffix();                                                                                                      \
    }                                                                                                                                        \
    CONSAN_DEVICE int prefix##_team_sync##suffix(nvshmem_team_t team) { return consan_check_team(team), prefix##_sync_all##suffix(), 0; }
CONSAN_BARRIERS(nvshmem, , 0, (void)0)
CONSAN_BARRIERS(nvshmemx, _warp, CONSAN_THREAD % 32, __syncwarp())
CONSAN_BARRIERS(nvshmemx, _block, CONSAN_THREAD, __syncthreads())

// Functions of types: copies by a thread, a warp or a CTA.
#define CONSAN_COPIES_BY(name, type, prefix, suffix)                                                                                         \
    CONSAN_DEVICE void prefix##_##name##_put##suffix(type *to, const type *from, size_t count, int pe) { prefix##_putmem##suffix(to, from, count * sizeof(type), pe); } \
    CONSAN_DEVICE void prefix##_##name##_put_nbi##suffix(type *to, const type *from, size_t count, int pe) { prefix##_putmem##suffix(to, from, count * sizeof(type), pe); } \
    CONSAN_DEVICE void prefix##_##name##_get##suffix(type *to, const type *from, size_t count, int pe) { prefix##_getmem##suffix(to, from, count * sizeof(type), pe); } \
    CONSAN_DEVICE void prefix##_##name##_get_nbi##suffix(type *to, const type *from, size_t count, int pe) { prefix##_getmem##suffix(to, from, count * sizeof(type), pe); } \
    CONSAN_DEVICE void prefix##_##name##_put_signal##suffix(                                                                                 \
        type *to, const type *from, size_t count, uint64_t *signal, uint64_t value, int op, int pe) {                                        \
        prefix##_putmem_signal##suffix(to, from, count * sizeof(type), signal, value, op, pe);                                                \
    }                                                                                                                                        \
    CONSAN_DEVICE void prefix##_##name##_put_signal_nbi##suffix(                                                                             \
        type *to, const type *from, size_t count, uint64_t *signal, uint64_t value, int op, int pe) {                                        \
        prefix##_putmem_signal##suffix(to, from, count * sizeof(type), signal, value, op, pe);                                                \
    }
#define CONSAN_COPIES(name, type)                                                                                                            \
    CONSAN_COPIES_BY(name, type, nvshmem, )                                                                                                  \
    CONSAN_COPIES_BY(name, type, nvshmemx, _warp)                                                                                            \
    CONSAN_COPIES_BY(name, type, nvshmemx, _block)
CONSAN_COPIES(char, char)
CONSAN_COPIES(int8, int8_t)
CONSAN_COPIES(uint8, uint8_t)
CONSAN_COPIES(int16, int16_t)
CONSAN_COPIES(uint16, uint16_t)
CONSAN_COPIES(int, int)
CONSAN_COPIES(int32, int32_t)
CONSAN_COPIES(uint32, uint32_t)
CONSAN_COPIES(long, long)
CONSAN_COPIES(int64, int64_t)
CONSAN_COPIES(uint64, uint64_t)
CONSAN_COPIES(float, float)
CONSAN_COPIES(double, double)

// One element (p, g), waits for a flag, and atomics, which order nothing else.
#define CONSAN_ATOMIC(name, type, word, c, function, operation, bits)                                                                         \
    CONSAN_DEVICE type nvshmem_##name##_atomic_##function(type *to, type value, int pe) {                                                    \
        word before;                                                                                                                         \
        asm volatile("atom.relaxed.sys." operation "." bits " %0, [%1], %2;" : "=" c(before) : "l"(consan_there(to, pe)), c((word)value) : "memory"); \
        return (type)before;                                                                                                                 \
    }
#define CONSAN_OF_TYPE(name, type, word, bits, sum, c)                                                                                       \
    CONSAN_DEVICE void nvshmem_##name##_p(type *to, type value, int pe) {                                                                    \
        asm volatile("// nvshmem: put");                                                                                                     \
        asm volatile("st.relaxed.sys." bits " [%0], %1;" ::"l"(consan_there(to, pe)), c((word)value) : "memory");                             \
    }                                                                                                                                        \
    CONSAN_DEVICE type nvshmem_##name##_g(const type *from, int pe) { return *(const type *)consan_there(from, pe); }                         \
    CONSAN_DEVICE type nvshmem_##name##_atomic_fetch(const type *from, int pe) {                                                             \
        word seen;                                                                                                                           \
        asm volatile("ld.relaxed.sys." bits " %0, [%1];" : "=" c(seen) : "l"(consan_there(from, pe)) : "memory");                             \
        return (type)seen;                                                                                                                   \
    }                                                                                                                                        \
    CONSAN_ATOMIC(name, type, word, c, fetch_add, "add", sum)                                                                                \
    CONSAN_ATOMIC(name, type, word, c, swap, "exch", bits)                                                                                   \
    CONSAN_DEVICE type nvshmem_##name##_atomic_compare_swap(type *to, type compared, type value, int pe) {                                   \
        word before;                                                                                                                         \
        asm volatile("atom.relaxed.sys.cas." bits " %0, [%1], %2, %3;"                                                                       \
                     : "=" c(before) : "l"(consan_there(to, pe)), c((word)compared), c((word)value) : "memory");                             \
        return (type)before;                                                                                                                 \
    }                                                                                                                                        \
    CONSAN_DEVICE type nvshmem_##name##_atomic_fetch_inc(type *to, int pe) { return nvshmem_##name##_atomic_fetch_add(to, 1, pe); }           \
    CONSAN_DEVICE void nvshmem_##name##_atomic_add(type *to, type value, int pe) { nvshmem_##name##_atomic_fetch_add(to, value, pe); }        \
    CONSAN_DEVICE void nvshmem_##name##_atomic_inc(type *to, int pe) { nvshmem_##name##_atomic_fetch_add(to, 1, pe); }                        \
    CONSAN_DEVICE void nvshmem_##name##_atomic_set(type *to, type value, int pe) { nvshmem_##name##_atomic_swap(to, value, pe); }             \
    CONSAN_DEVICE bool nvshmem_##name##_test(type *at, int cmp, type value) {                                                                \
        word seen;                                                                                                                           \
        asm volatile("ld.acquire.sys." bits " %0, [%1];" : "=" c(seen) : "l"(at) : "memory");                                                \
        return consan_holds((type)seen, cmp, value);                                                                                         \
    }                                                                                                                                        \
    CONSAN_DEVICE void nvshmem_##name##_wait_until(type *at, int cmp, type value) {                                                          \
        while (!nvshmem_##name##_test(at, cmp, value)) {}                                                                                    \
    }
CONSAN_OF_TYPE(int, int, int, "b32", "u32", "r")
CONSAN_OF_TYPE(int32, int32_t, int, "b32", "u32", "r")
CONSAN_OF_TYPE(uint32, uint32_t, unsigned, "b32", "u32", "r")
CONSAN_OF_TYPE(int64, int64_t, long long, "b64", "u64", "l")
CONSAN_OF_TYPE(uint64, uint64_t, unsigned long long, "b64", "u64", "l")
CONSAN_OF_TYPE(long, long, long long, "b64", "u64", "l")
CONSAN_DEVICE void nvshmem_float_p(float *to, float value, int pe) { nvshmem_uint32_p((uint32_t *)to, __float_as_uint(value), pe); }
CONSAN_DEVICE float nvshmem_float_g(const float *from, int pe) { return *(const float *)consan_there(from, pe); }
