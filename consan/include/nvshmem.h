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
// A signal behind it orders the puts of this thread to the same rank.
CONSAN_DEVICE void nvshmem_fence() { asm volatile("// consan_put_fence;\n\tfence.acq_rel.sys;" ::: "memory"); }
CONSAN_DEVICE void nvshmem_quiet() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Who calls: a thread, a warp or a CTA.
struct consan_thread {
    CONSAN_DEVICE unsigned at() { return 0; }
    CONSAN_DEVICE unsigned count() { return 1; }
    CONSAN_DEVICE void sync() {}
};
struct consan_block {
    CONSAN_DEVICE unsigned at() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
    CONSAN_DEVICE unsigned count() { return blockDim.x * blockDim.y * blockDim.z; }
    CONSAN_DEVICE void sync() { __syncthreads(); }
};
struct consan_warp {
    CONSAN_DEVICE unsigned at() { return consan_block::at() % 32; }
    CONSAN_DEVICE unsigned count() { return 32; }
    CONSAN_DEVICE void sync() { __syncwarp(); }
};

template <typename G> CONSAN_DEVICE void consan_copy(void *to, const void *from, size_t bytes) {
    bool words = ((size_t)to | (size_t)from | bytes) % 4 == 0;
    if (words)
        for (size_t at = G::at(); at < bytes / 4; at += G::count()) ((unsigned *)to)[at] = ((const unsigned *)from)[at];
    else
        for (size_t at = G::at(); at < bytes; at += G::count()) ((char *)to)[at] = ((const char *)from)[at];
}
CONSAN_DEVICE void consan_signal(uint64_t *own, uint64_t value, int op, int pe) {
    uint64_t *there = (uint64_t *)consan_there(own, pe);
    if (op == NVSHMEM_SIGNAL_ADD) consan_add(there, value);
    else consan_set(there, value);
}
CONSAN_DEVICE void consan_nbi() { asm volatile("// nvshmem: nbi"); }
template <typename G> CONSAN_DEVICE void consan_put(void *to, const void *from, size_t bytes, int pe) {
    asm volatile("// nvshmem: put");
    G::sync();
    consan_copy<G>(consan_there(to, pe), from, bytes);
    G::sync();
}
template <typename G> CONSAN_DEVICE void consan_get(void *to, const void *from, size_t bytes, int pe) {
    asm volatile("// nvshmem: get");
    G::sync();
    consan_copy<G>(to, consan_there(from, pe), bytes);
    G::sync();
}
// A put with its own signal, or a collective: of all that was put, its signals order what the group puts from here on.
template <typename G> CONSAN_DEVICE void consan_own_puts() {
    if (G::at() == 0) asm volatile("// consan_put_begin;" ::: "memory");
}
CONSAN_DEVICE void consan_own_puts_end() { asm volatile("// consan_put_end;" ::: "memory"); }
template <typename G> CONSAN_DEVICE void consan_put_signal(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {
    asm volatile("// nvshmem: put with signal");
    G::sync();
    consan_own_puts<G>();
    consan_copy<G>(consan_there(to, pe), from, bytes);
    G::sync();
    if (G::at() == 0) nvshmem_fence(), consan_signal(signal, value, op, pe), consan_own_puts_end();
}
// Copies with strides, in elements.
template <typename T> CONSAN_DEVICE void consan_strided(T *to, const T *from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count) {
    for (size_t at = 0; at < count; ++at) to[at * to_stride] = from[at * from_stride];
}

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

// Barriers and collectives. All ranks come to the next one, and each sends the others its number. A row for each rank has what each has sent it of
// barriers, how many it has begun, and the same of collectives. One thread of a rank, or one group, is in one at a time ("Collective
// Communication" in the NVSHMEM specification).
enum { CONSAN_BARRIERS = 0, CONSAN_COLLECTIVES };
CONSAN_DEVICE uint64_t *consan_counters(int which, int pe) {
    unsigned low, high;
    asm volatile("mov.b32 %0, %%envreg27;" : "=r"(low));
    asm volatile("mov.b32 %0, %%envreg28;" : "=r"(high));
    return (uint64_t *)((size_t)high << 32 | low) + (2 * pe + which) * (nvshmem_n_pes() + 1);
}
// Tell ranks `told` to the one before `past` that this one has come; returns its number.
template <bool Whole = true> CONSAN_DEVICE uint64_t consan_come(int which, int told, int past) {
    uint64_t before;
    asm volatile("atom.relaxed.sys.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(consan_counters(which, nvshmem_my_pe()) + nvshmem_n_pes()) : "memory");
    if (Whole) nvshmem_quiet();
    else nvshmem_fence();
    for (int pe = told; pe < past; ++pe) consan_set(consan_counters(which, pe) + nvshmem_my_pe(), before + 1);
    return before + 1;
}
CONSAN_DEVICE void consan_await(int which, uint64_t number, int from, int past) {
    for (int pe = from; pe < past; ++pe) nvshmem_signal_wait_until(consan_counters(which, nvshmem_my_pe()) + pe, NVSHMEM_CMP_GE, number);
}
template <typename G> CONSAN_DEVICE void consan_meet(int which) {
    G::sync();
    if (G::at() == 0) consan_await(which, consan_come(which, 0, nvshmem_n_pes()), 0, nvshmem_n_pes());
    G::sync();
}
#define CONSAN_BARRIERS_BY(prefix, suffix, group) \
    CONSAN_DEVICE void prefix##_barrier_all##suffix() { consan_meet<group>(CONSAN_BARRIERS); } \
    CONSAN_DEVICE int prefix##_barrier##suffix(nvshmem_team_t team) { return consan_check_team(team), prefix##_barrier_all##suffix(), 0; } \
    CONSAN_DEVICE void prefix##_sync_all##suffix() { \
        asm volatile("// nvshmem: sync"); \
        prefix##_barrier_all##suffix(); \
    } \
    CONSAN_DEVICE int prefix##_team_sync##suffix(nvshmem_team_t team) { return consan_check_team(team), prefix##_sync_all##suffix(), 0; }

// Collectives that move data. The destination of each rank must be free before any rank begins: that is the caller's to order.
template <typename G> CONSAN_DEVICE void consan_begin(nvshmem_team_t team) {
    asm volatile("// nvshmem: collective");
    consan_check_team(team), G::sync();
    consan_own_puts<G>();
}
// Rank `from` has what the others get, or each has something for each.
template <typename G> CONSAN_DEVICE int consan_end(int from, int past) {
    int me = nvshmem_my_pe();
    bool gives = from <= me && me < past;
    G::sync();
    if (G::at() == 0) {
        uint64_t number = consan_come<false>(CONSAN_COLLECTIVES, 0, gives ? nvshmem_n_pes() : 0);
        consan_own_puts_end();
        consan_await(CONSAN_COLLECTIVES, number, from, past);
    }
    G::sync();
    return 0;
}
template <typename G> CONSAN_DEVICE int consan_broadcast(nvshmem_team_t team, void *to, const void *from, size_t bytes, int root) {
    consan_begin<G>(team);
    for (int pe = 0; nvshmem_my_pe() == root && pe < nvshmem_n_pes(); ++pe) consan_copy<G>(consan_there(to, pe), from, bytes);
    return consan_end<G>(root, root + 1);
}
template <typename G> CONSAN_DEVICE int consan_gather(nvshmem_team_t team, void *to, const void *from, size_t bytes) {
    consan_begin<G>(team);
    for (int pe = 0; pe < nvshmem_n_pes(); ++pe) consan_copy<G>(consan_there((char *)to + nvshmem_my_pe() * bytes, pe), from, bytes);
    return consan_end<G>(0, nvshmem_n_pes());
}
template <typename G> CONSAN_DEVICE int consan_alltoall(nvshmem_team_t team, void *to, const void *from, size_t bytes) {
    consan_begin<G>(team);
    for (int pe = 0; pe < nvshmem_n_pes(); ++pe) consan_copy<G>(consan_there((char *)to + nvshmem_my_pe() * bytes, pe), (const char *)from + pe * bytes, bytes);
    return consan_end<G>(0, nvshmem_n_pes());
}
// A rank combines every n-th element of all and stores it at all: source and destination may be the same.
template <typename G, typename O, typename T> CONSAN_DEVICE int consan_reduce(nvshmem_team_t team, T *to, const T *from, size_t count) {
    int me = nvshmem_my_pe(), ranks = nvshmem_n_pes();
    consan_check_team(team), G::sync();
    if (G::at() == 0) {
        asm volatile("// consan_put_begin;" ::: "memory");
        uint64_t number = consan_come<false>(CONSAN_COLLECTIVES, 0, ranks);
        consan_own_puts_end(), consan_await(CONSAN_COLLECTIVES, number, 0, ranks);
    }
    consan_begin<G>(team);
    for (size_t at = me + (size_t)G::at() * ranks; at < count; at += (size_t)G::count() * ranks) {
        T all = *(const T *)consan_there(from + at, 0);
        for (int pe = 1; pe < ranks; ++pe) all = O::of(all, *(const T *)consan_there(from + at, pe));
        for (int pe = 0; pe < ranks; ++pe) *(T *)consan_there(to + at, pe) = all;
    }
    return consan_end<G>(0, ranks);
}
#define CONSAN_OPERATION(name, value) \
    struct consan_##name { \
        template <typename T> CONSAN_DEVICE T of(T a, T b) { return value; } \
    };
CONSAN_OPERATION(sum, a + b)
CONSAN_OPERATION(prod, a *b)
CONSAN_OPERATION(min, b < a ? b : a)
CONSAN_OPERATION(max, a < b ? b : a)
CONSAN_OPERATION(and, a &b)
CONSAN_OPERATION(or, a | b)
CONSAN_OPERATION(xor, a ^ b)

// Functions of a thread, a warp or a CTA: of bytes, then of types.
#define CONSAN_OF_GROUP(prefix, suffix, group) \
    CONSAN_BARRIERS_BY(prefix, suffix, group) \
    CONSAN_DEVICE void prefix##_putmem##suffix(void *to, const void *from, size_t bytes, int pe) { consan_put<group>(to, from, bytes, pe); } \
    CONSAN_DEVICE void prefix##_putmem_nbi##suffix(void *to, const void *from, size_t bytes, int pe) { \
        consan_nbi(); \
        consan_put<group>(to, from, bytes, pe); \
    } \
    CONSAN_DEVICE void prefix##_getmem##suffix(void *to, const void *from, size_t bytes, int pe) { consan_get<group>(to, from, bytes, pe); } \
    CONSAN_DEVICE void prefix##_getmem_nbi##suffix(void *to, const void *from, size_t bytes, int pe) { \
        consan_nbi(); \
        consan_get<group>(to, from, bytes, pe); \
    } \
    CONSAN_DEVICE void prefix##_putmem_signal##suffix(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) { \
        consan_put_signal<group>(to, from, bytes, signal, value, op, pe); \
    } \
    CONSAN_DEVICE void prefix##_putmem_signal_nbi##suffix(void *to, const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op, int pe) { \
        consan_nbi(); \
        consan_put_signal<group>(to, from, bytes, signal, value, op, pe); \
    } \
    CONSAN_DEVICE int prefix##_broadcastmem##suffix(nvshmem_team_t team, void *to, const void *from, size_t bytes, int root) { \
        return consan_broadcast<group>(team, to, from, bytes, root); \
    } \
    CONSAN_DEVICE int prefix##_fcollectmem##suffix(nvshmem_team_t team, void *to, const void *from, size_t bytes) { \
        return consan_gather<group>(team, to, from, bytes); \
    } \
    CONSAN_DEVICE int prefix##_alltoallmem##suffix(nvshmem_team_t team, void *to, const void *from, size_t bytes) { \
        return consan_alltoall<group>(team, to, from, bytes); \
    }
CONSAN_OF_GROUP(nvshmem, , consan_thread)
CONSAN_OF_GROUP(nvshmemx, _warp, consan_warp)
CONSAN_OF_GROUP(nvshmemx, _block, consan_block)

#define CONSAN_COPIES_BY(name, type, prefix, suffix) \
    CONSAN_DEVICE void prefix##_##name##_put##suffix(type *to, const type *from, size_t count, int pe) { \
        prefix##_putmem##suffix(to, from, count * sizeof(type), pe); \
    } \
    CONSAN_DEVICE void prefix##_##name##_put_nbi##suffix(type *to, const type *from, size_t count, int pe) { \
        consan_nbi(); \
        prefix##_putmem##suffix(to, from, count * sizeof(type), pe); \
    } \
    CONSAN_DEVICE void prefix##_##name##_get##suffix(type *to, const type *from, size_t count, int pe) { \
        prefix##_getmem##suffix(to, from, count * sizeof(type), pe); \
    } \
    CONSAN_DEVICE void prefix##_##name##_get_nbi##suffix(type *to, const type *from, size_t count, int pe) { \
        consan_nbi(); \
        prefix##_getmem##suffix(to, from, count * sizeof(type), pe); \
    } \
    CONSAN_DEVICE void prefix##_##name##_put_signal##suffix(type *to, const type *from, size_t count, uint64_t *signal, uint64_t value, int op, int pe) { \
        prefix##_putmem_signal##suffix(to, from, count * sizeof(type), signal, value, op, pe); \
    } \
    CONSAN_DEVICE void prefix##_##name##_put_signal_nbi##suffix(type *to, const type *from, size_t count, uint64_t *signal, uint64_t value, int op, int pe) { \
        consan_nbi(); \
        prefix##_putmem_signal##suffix(to, from, count * sizeof(type), signal, value, op, pe); \
    } \
    CONSAN_DEVICE int prefix##_##name##_broadcast##suffix(nvshmem_team_t team, type *to, const type *from, size_t count, int root) { \
        return prefix##_broadcastmem##suffix(team, to, from, count * sizeof(type), root); \
    } \
    CONSAN_DEVICE int prefix##_##name##_fcollect##suffix(nvshmem_team_t team, type *to, const type *from, size_t count) { \
        return prefix##_fcollectmem##suffix(team, to, from, count * sizeof(type)); \
    } \
    CONSAN_DEVICE int prefix##_##name##_alltoall##suffix(nvshmem_team_t team, type *to, const type *from, size_t count) { \
        return prefix##_alltoallmem##suffix(team, to, from, count * sizeof(type)); \
    } \
    CONSAN_REDUCTION(name, type, prefix, suffix, sum) \
    CONSAN_REDUCTION(name, type, prefix, suffix, prod) \
    CONSAN_REDUCTION(name, type, prefix, suffix, min) \
    CONSAN_REDUCTION(name, type, prefix, suffix, max)
#define CONSAN_REDUCTION(name, type, prefix, suffix, operation) \
    CONSAN_DEVICE int prefix##_##name##_##operation##_reduce##suffix(nvshmem_team_t team, type *to, const type *from, size_t count) { \
        return consan_reduce<CONSAN_GROUP##suffix, consan_##operation>(team, to, from, count); \
    }
#define CONSAN_GROUP consan_thread
#define CONSAN_GROUP_warp consan_warp
#define CONSAN_GROUP_block consan_block
#define CONSAN_BITS_BY(name, type, prefix, suffix) \
    CONSAN_REDUCTION(name, type, prefix, suffix, and) \
    CONSAN_REDUCTION(name, type, prefix, suffix, or) \
    CONSAN_REDUCTION(name, type, prefix, suffix, xor)
#define CONSAN_OF_GROUPS(each, name, type) each(name, type, nvshmem, ) each(name, type, nvshmemx, _warp) each(name, type, nvshmemx, _block)
#define CONSAN_COPIES(name, type) \
    CONSAN_OF_GROUPS(CONSAN_COPIES_BY, name, type) \
    CONSAN_DEVICE void nvshmem_##name##_iput(type *to, const type *from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count, int pe) { \
        asm volatile("// nvshmem: put"); \
        consan_strided((type *)consan_there(to, pe), from, to_stride, from_stride, count); \
    } \
    CONSAN_DEVICE void nvshmem_##name##_iget(type *to, const type *from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count, int pe) { \
        asm volatile("// nvshmem: get"); \
        consan_strided(to, (const type *)consan_there(from, pe), to_stride, from_stride, count); \
    }
#define CONSAN_INTEGERS(name, type) \
    CONSAN_COPIES(name, type) \
    CONSAN_OF_GROUPS(CONSAN_BITS_BY, name, type)
CONSAN_INTEGERS(char, char)
CONSAN_INTEGERS(int8, int8_t)
CONSAN_INTEGERS(uint8, uint8_t)
CONSAN_INTEGERS(int16, int16_t)
CONSAN_INTEGERS(uint16, uint16_t)
CONSAN_INTEGERS(int, int)
CONSAN_INTEGERS(int32, int32_t)
CONSAN_INTEGERS(uint32, uint32_t)
CONSAN_INTEGERS(long, long)
CONSAN_INTEGERS(int64, int64_t)
CONSAN_INTEGERS(uint64, uint64_t)
CONSAN_COPIES(float, float)
CONSAN_COPIES(double, double)

// One element (p, g), waits for a flag, and atomics, which order nothing else.
#define CONSAN_ATOMIC(name, type, word, c, function, operation, bits) \
    CONSAN_DEVICE type nvshmem_##name##_atomic_##function(type *to, type value, int pe) { \
        word before; \
        asm volatile("atom.relaxed.sys." operation "." bits " %0, [%1], %2;" : "=" c(before) : "l"(consan_there(to, pe)), c((word)value) : "memory"); \
        return (type)before; \
    }
#define CONSAN_OF_TYPE(name, type, word, bits, sum, c) \
    CONSAN_DEVICE void nvshmem_##name##_p(type *to, type value, int pe) { \
        asm volatile("// nvshmem: put"); \
        asm volatile("st.relaxed.sys." bits " [%0], %1;" ::"l"(consan_there(to, pe)), c((word)value) : "memory"); \
    } \
    CONSAN_DEVICE type nvshmem_##name##_g(const type *from, int pe) { \
        asm volatile("// nvshmem: get"); \
        return *(const type *)consan_there(from, pe); \
    } \
    CONSAN_DEVICE type nvshmem_##name##_atomic_fetch(const type *from, int pe) { \
        word seen; \
        asm volatile("ld.relaxed.sys." bits " %0, [%1];" : "=" c(seen) : "l"(consan_there(from, pe)) : "memory"); \
        return (type)seen; \
    } \
    CONSAN_ATOMIC(name, type, word, c, fetch_add, "add", sum) \
    CONSAN_ATOMIC(name, type, word, c, swap, "exch", bits) \
    CONSAN_DEVICE type nvshmem_##name##_atomic_compare_swap(type *to, type compared, type value, int pe) { \
        word before; \
        asm volatile("atom.relaxed.sys.cas." bits " %0, [%1], %2, %3;" \
                     : "=" c(before) \
                     : "l"(consan_there(to, pe)), c((word)compared), c((word)value) \
                     : "memory"); \
        return (type)before; \
    } \
    CONSAN_DEVICE type nvshmem_##name##_atomic_fetch_inc(type *to, int pe) { return nvshmem_##name##_atomic_fetch_add(to, 1, pe); } \
    CONSAN_DEVICE void nvshmem_##name##_atomic_add(type *to, type value, int pe) { nvshmem_##name##_atomic_fetch_add(to, value, pe); } \
    CONSAN_DEVICE void nvshmem_##name##_atomic_inc(type *to, int pe) { nvshmem_##name##_atomic_fetch_add(to, 1, pe); } \
    CONSAN_DEVICE void nvshmem_##name##_atomic_set(type *to, type value, int pe) { nvshmem_##name##_atomic_swap(to, value, pe); } \
    CONSAN_DEVICE bool nvshmem_##name##_test(type *at, int cmp, type value) { \
        word seen; \
        asm volatile("ld.acquire.sys." bits " %0, [%1];" : "=" c(seen) : "l"(at) : "memory"); \
        return consan_holds((type)seen, cmp, value); \
    } \
    CONSAN_DEVICE void nvshmem_##name##_wait_until(type *at, int cmp, type value) { \
        while (!nvshmem_##name##_test(at, cmp, value)) {} \
    }
CONSAN_OF_TYPE(int, int, int, "b32", "u32", "r")
CONSAN_OF_TYPE(int32, int32_t, int, "b32", "u32", "r")
CONSAN_OF_TYPE(uint32, uint32_t, unsigned, "b32", "u32", "r")
CONSAN_OF_TYPE(int64, int64_t, long long, "b64", "u64", "l")
CONSAN_OF_TYPE(uint64, uint64_t, unsigned long long, "b64", "u64", "l")
CONSAN_OF_TYPE(long, long, long long, "b64", "u64", "l")
CONSAN_DEVICE void nvshmem_float_p(float *to, float value, int pe) { nvshmem_uint32_p((uint32_t *)to, __float_as_uint(value), pe); }
CONSAN_DEVICE float nvshmem_float_g(const float *from, int pe) { return __uint_as_float(nvshmem_uint32_g((const uint32_t *)from, pe)); }
