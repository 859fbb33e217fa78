"""Each known bound (instrument/BOUNDS.md): just inside it a finding is there, just beyond it the documented effect occurs.

A case beyond a bound asserts the weaker result. When the hooks become better, the case fails: delete the row of BOUNDS.md then.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from device_support import Bench, markers
from sampled import one_in

from consan.instrument.abi import sizes
from consan.instrument.runtime import Variant
from consan.reports.model import Report

KERNELS = Path(__file__).parents[1] / "kernels"
MBARRIER = (KERNELS / "mbarrier.cuh").read_text()
HOPPER = (KERNELS / "hopper.cuh").read_text()
MAPS = HOPPER + (KERNELS / "tensormap.cuh").read_text().replace('#include "hopper.cuh"', "")
WORDS = 1 << 16  # of each buffer
TINY = Variant(epoch_bits=(4, 6), epoch_limit=200)

# Accesses that the compiler neither removes nor moves.
ACCESS = """#define PUT(to, value) asm volatile("st.shared.u32 [%0], %1;" :: "r"(shared(to)), "r"((unsigned)(value)) : "memory")
#define BULK_STORE(to, from) \\
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" :: "l"(to), "r"(shared(from)) : "memory")
#define GET(value, from) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared(from)) : "memory")
"""

STORE128 = """#define STORE128(to, value) \\
    asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %1}; st.shared.b128 [%0], v; }" :: "r"(shared(to)), "l"(value) : "memory")
"""
PUBLISH = """#define PUBLISH \\
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
"""

Place = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One launch: the kernel's argument, the findings that are expected, and whether something is counted as evicted."""

    n: int
    found: frozenset[Place] = frozenset()
    evicted: bool = False


@dataclass(frozen=True)
class Bound:
    """A kernel `kernel(int n, unsigned* x, unsigned* out)` and its cases, inside the bound first."""

    id: str
    body: str
    cases: tuple[Case, ...]
    threads: int = 64
    head: str = MBARRIER
    variant: Variant | None = None
    shared: int = 0

    @property
    def source(self) -> str:
        """The text that is compiled."""
        return f'{self.head}\n#define DELAY() for (int i_ = 0; i_ < 3000; i_++) asm volatile("" ::: "memory")\n{ACCESS}{self.body}'


def one(*place: str) -> frozenset[Place]:
    """One finding: kind, severity, markers in order."""
    return frozenset({place})


def report_of(bound: Bound, n: int) -> Report:
    """Run one case on the virtual machine."""
    more = {"variant": bound.variant} if bound.variant else {}
    bench = Bench("cpu", bound.source, **more)
    bench.launch("kernel", 1, bound.threads, n, bench.zeros(WORDS), bench.zeros(WORDS), shared=bound.shared)
    return bench.report()


def told(report: Report, source: str) -> frozenset[Place]:
    """Kind, severity and sorted markers of each finding."""
    names = markers(source)
    return frozenset((f.kind, f.severity, *sorted(names.get(access.line, str(access.line)) for access in f.pair)) for f in report.findings)


START = 'extern "C" __global__ void kernel(int n, unsigned* x, unsigned* out) {\n    const unsigned t = threadIdx.x;\n'

# The result of a bulk store is read by another warp, after the wait and with no barrier between.
GLOBAL_RESULT = (
    START
    + """
    __shared__ alignas(16) unsigned tile[4];
    if (t < 4) tile[t] = t;
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        BULK_STORE(out, tile); /*@store*/
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
    if (t == 32) { DELAY(); asm volatile("ld.global.u32 %%0, [%%1];" : "=r"(x[0]) : "l"(out) : "memory"); } /*@read*/
    %s
}"""
)
POLL = """
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(x + 64) : "memory"); while (seen);
"""

BOUNDS = [
    Bound(
        "last_atomic_of_a_warp",
        START
        + """
    __shared__ unsigned count;
    if (t == 0) count = 0;
    __syncwarp();
    atomicAdd(&count, 1u); /*@add*/
    if (t == n) GET(out[0], &count); /*@read*/
}""",
        (Case(0, one("data-race", "error", "add", "read")), Case(31)),
        threads=32,
    ),
    Bound(
        "warp_syncs",
        START
        + """
    __shared__ unsigned word;
    if (t == 0) PUT(&word, 1); /*@write*/
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        if (k == 3 && t < 2) __syncwarp(3);
        if (t == 0 || t == k + 2) __syncwarp(1 | 4u << k);
        if (t == 1 || t == k + 16) __syncwarp(2 | 1u << (k + 16));
    }
    if (n <= 3 && t < 2) __syncwarp(3);
    if (t == 1) { DELAY(); GET(out[0], &word); } /*@read*/
}""",
        (Case(sizes.WARP_SYNCS - 1), Case(sizes.WARP_SYNCS, one("data-race", "error", "read", "write"))),
        threads=32,
    ),
    Bound(
        "wait_history",
        START
        + """
    __shared__ alignas(16) unsigned tile[128];
    if (t < 32) {
        COPY16(&tile[4 * t], &x[4 * t]); /*@copy*/
        asm volatile("cp.async.commit_group; cp.async.wait_group 0; barrier.arrive 1, 64;" ::: "memory");
        #pragma unroll 1
        for (int k = 0; k < n; k++) asm volatile("cp.async.commit_group; cp.async.wait_group 0; barrier.arrive 2, 32;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        DELAY();
        out[t] = tile[t]; /*@read*/
    }
}""",
        (Case(sizes.WAIT_HISTORY - 1), Case(sizes.WAIT_HISTORY, evicted=True)),
    ),
    Bound(
        "copy_ranges",
        START
        + """
    __shared__ alignas(16) unsigned tile[256];
    if (t == 0) {
        #pragma unroll 1
        for (int k = 0; k < n; k++) COPY16(&tile[4 * k], &x[8 * k]); /*@copy*/
        asm volatile("cp.async.commit_group;" ::: "memory");
        x[0] = 7; /*@store*/
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
}""",
        (Case(sizes.COPY_RANGES, one("missing-wait", "error", "copy", "store")), Case(sizes.COPY_RANGES + 1, evicted=True)),
    ),
    Bound(
        "mbarriers",
        START
        + """
    __shared__ u64 bars[80];
    if (t == 0)
        #pragma unroll 1
        for (int k = 0; k < n; k++) { INIT(&bars[k], 1); ARRIVE(&bars[k]); WAIT(&bars[k], 0); }
}""",
        (Case(sizes.MBARRIERS), Case(sizes.MBARRIERS + 1, evicted=True)),
    ),
    Bound(
        "results",
        START
        + """
    __shared__ alignas(16) unsigned tile[4];
    if (t < 4) tile[t] = t;
    FENCE_PROXY();
    __syncthreads();
    if (t == 0) {
        #pragma unroll 1
        for (int k = 0; k < n; k++) BULK_STORE(out + 8 * k, tile); /*@store*/
        bulk_commit();
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(x[0]) : "l"(out) : "memory"); /*@read*/
        bulk_wait<0>();
    }
}""",
        (Case(sizes.RESULTS, one("missing-wait", "error", "read", "store")), Case(sizes.RESULTS + 1, evicted=True)),
        head=HOPPER + "\n#define FENCE_PROXY() fence_async_shared()\n",
    ),
    Bound(
        "fetches",
        START
        + """
    __shared__ alignas(16) unsigned tile[4 * 80];
    __shared__ u64 full;
    if (t == 0) {
        INIT(&full, 1);
        ARRIVE_EXPECT(&full, 16 * n);
        #pragma unroll 1
        for (int k = 0; k < n; k++) BULK_LOAD(&tile[4 * k], &x[8 * k], 16, &full); /*@load*/
        x[0] = 7; /*@store*/
        WAIT(&full, 0);
    }
}""",
        (Case(sizes.FETCHES, one("missing-wait", "error", "load", "store")), Case(sizes.FETCHES + 1, evicted=True)),
    ),
    Bound(
        "bulk_group_waits",
        START
        + """
    __shared__ alignas(16) unsigned tile[8];
    if (t < 8) tile[t] = t;
    fence_async_shared();
    __syncthreads();
    if (t == 0) {
        BULK_STORE(out, tile); /*@store*/
        bulk_commit();
        bulk_wait_read<0>();
    }
    if (t < 32) asm volatile("barrier.arrive 1, 64;" ::: "memory");
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        if (t == 0) { bulk_store(out + 8, tile + 4, 16); bulk_commit(); bulk_wait_read<0>(); }
        if (t < 32) asm volatile("barrier.arrive 2, 32;" ::: "memory");
    }
    if (t >= 32) {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        DELAY();
        if (t == 32) tile[0] = 7; /*@overwrite*/
    }
    if (t == 0) bulk_wait<0>();
}""",
        (Case(sizes.GROUP_WAITS - 1), Case(sizes.GROUP_WAITS, one("missing-wait", "error", "overwrite", "store"))),
        head=HOPPER,
    ),
    Bound(
        "copy_tags",
        START
        + """
    __shared__ alignas(16) unsigned tile[4 * 20];
    __shared__ u64 full[20];
    if (t < 20) INIT(&full[t], 1);
    __syncthreads();
    if (t == 0)
        #pragma unroll 1
        for (int k = 0; k < n; k++) { COPY16(&tile[4 * k], &x[4 * k]); COPIES_ARRIVE_NOINC(&full[k]); } /*@copy*/
    else if (t == 32) {
        DELAY();
        WAIT(&full[0], 0);
        out[0] = tile[0]; /*@read*/
    }
}""",
        (Case(sizes.COPY_TAGS), Case(sizes.COPY_TAGS + 1, evicted=True)),
    ),
    Bound(
        "copies_at_exit",
        START
        + """
    __shared__ alignas(16) unsigned tile[4];
    __shared__ u64 full;
    if (t == 0) {
        INIT(&full, 1);
        int size = n == 2 ? 0 : 16;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(shared(tile)), "l"(x), "r"(size) : "memory"); /*@copy*/
        if (n == 1) COPIES_ARRIVE_NOINC(&full);
    }
}""",
        (Case(0, one("lifetime", "error", "copy")), Case(1), Case(2)),
    ),
    Bound(
        "arrival_speaks_for_the_warp",
        START
        + """
    __shared__ unsigned word;
    __shared__ u64 full;
    if (t == 0) INIT(&full, 1);
    __syncthreads();
    if (t < 32) {
        if (t == 0) ARRIVE(&full);
        if (t == n) PUT(&word, 1); /*@store*/
    } else {
        WAIT(&full, 0);
        DELAY();
        if (t == 32) GET(out[0], &word); /*@read*/
    }
}""",
        (Case(0, one("data-race", "error", "read", "store")), Case(1)),
    ),
    Bound(
        "flags_of_a_warp",
        START
        + """
    __shared__ unsigned word, flag;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t < 32) {
        if (t == 1) PUT(&word, 1); /*@store*/
        if (t == 0 && n) asm volatile("st.release.cta.shared.u32 [%0], 1;" :: "r"(shared(&flag)) : "memory");
        if (t == 0 && !n) asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" :: "r"(shared(&flag)) : "memory");
    } else if (t == 32) {
        unsigned seen;
        do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared(&flag)) : "memory"); while (!seen);
        DELAY();
        GET(out[0], &word); /*@read*/
    }
}""",
        (Case(0, one("data-race", "error", "read", "store")), Case(1)),
    ),
    Bound(
        "flag_cells",
        START
        + """
    __shared__ unsigned cells[512];
    for (int i = t; i < 512; i += 64) PUT(cells + i, 1);
    __syncthreads();
    if (t == 0) {
        PUT(cells, 2); /*@store*/
        asm volatile("st.release.cta.shared.u32 [%0], 2;" :: "r"(shared(cells + 1)) : "memory");
    }
    if (t == 32) {
        unsigned seen;
        DELAY();
        asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared(cells + n)) : "memory");
        GET(out[0], cells); /*@read*/
    }
}""",
        (Case(2, one("data-race", "error", "read", "store")), Case(56)),
    ),
    Bound(
        "last_relaxed_wait",
        START
        + """
    __shared__ unsigned words[2];
    __shared__ u64 full[2];
    if (t < 2) INIT(&full[t], 1);
    __syncthreads();
    if (t == 0) {
        PUT(words, 1); /*@store*/
        ARRIVE(&full[0]);
        ARRIVE(&full[1]);
    } else if (t == 32) {
        WAIT_RELAXED(&full[0], 0);
        if (n) WAIT_RELAXED(&full[1], 0);
        GET(out[0], words); /*@read*/
    }
}""",
        (Case(0, one("data-race", "error", "read", "store")), Case(1)),
    ),
    Bound(
        "fence_before_a_relaxed_arrival",
        START
        + """
    __shared__ unsigned word;
    __shared__ u64 first, second;
    if (t == 0) { INIT(&first, 1); INIT(&second, 1); }
    __syncthreads();
    if (t == 32) { PUT(&word, 1); ARRIVE(&first); } /*@store*/
    if (t == 0) {
        if (n) FENCE();
        WAIT(&first, 0);
        ARRIVE_RELAXED(&second);
    }
    if (t == 64) { WAIT(&second, 0); GET(out[0], &word); } /*@read*/
}""",
        (Case(0, one("data-race", "error", "read", "store")), Case(1)),
        threads=96,
    ),
    Bound(
        "old_reads",
        START
        + """
    __shared__ unsigned tile[32];
    if (t < 32) tile[t] = t;
    __syncthreads();
    if (t < 32) {
        out[t] = tile[t]; /*@read*/
        #pragma unroll 1
        for (int k = 0; k < n; k++) asm volatile("barrier.sync 1, 32;" ::: "memory");
    } else {
        DELAY();
        tile[t - 32] = 7; /*@write*/
    }
}""",
        (Case(3, one("data-race", "error", "read", "write")), Case(12)),
        variant=TINY,
    ),
    Bound(
        "hash_of_a_value",
        START
        + """
    __shared__ unsigned word;
    if (t == 0) PUT(&word, 1); /*@first*/
    if (t == 32) PUT(&word, n); /*@second*/
}""",
        (Case(2, one("data-race", "error", "first", "second")), Case(28658, one("data-race", "warning", "first", "second"))),
    ),
    Bound(
        "values_of_128_bits",
        STORE128
        + START
        + """
    __shared__ alignas(16) unsigned words[4];
    u64 zero = 0;
    if (t == 0 && n) STORE128(words, zero); /*@wide*/
    if (t == 32 && n) STORE128(words, zero); /*@wide_too*/
    if (t == 0 && !n) asm volatile("st.shared.b64 [%0], %1;" :: "r"(shared(words)), "l"(zero) : "memory"); /*@narrow*/
    if (t == 32 && !n) asm volatile("st.shared.b64 [%0], %1;" :: "r"(shared(words)), "l"(zero) : "memory"); /*@narrow_too*/
}""",
        (Case(0, one("data-race", "warning", "narrow", "narrow_too")), Case(1, one("data-race", "error", "wide", "wide_too"))),
    ),
    Bound(
        "map_fields",
        PUBLISH
        + START
        + """
    __shared__ SharedMap built;
    if (n && t == 0) set_width(&built, 100);
    __syncwarp();
    asm volatile(PUBLISH :: "l"(x), "r"(shared(&built)) : "memory"); /*@publish*/
}""",
        (Case(0, one("uninitialized-read", "error", "publish")), Case(1)),
        head=MAPS,
        threads=32,
    ),
    Bound(
        "global_pieces",
        START
        + """
    __shared__ alignas(16) unsigned tile[4];
    __shared__ u64 full;
    if (t == 0) {
        INIT(&full, 1);
        x[0] = 7; /*@store*/
        x[n] = 7;
        ARRIVE_EXPECT(&full, 16);
        BULK_LOAD(tile, x, 16, &full); /*@load*/
        WAIT(&full, 0);
    }
}""",
        (Case(4, one("missing-proxy-fence", "error", "load", "store")), Case(4 * sizes.WRITTEN)),
    ),
    Bound(
        "fence_events",
        START
        + """
    __shared__ alignas(16) unsigned tile[4];
    __shared__ u64 full;
    if (t == 0) { INIT(&full, 1); }
    __syncthreads();
    if (t < 32) {
        if (t == 0) x[0] = 7; /*@store*/
        asm volatile("barrier.arrive 1, 64;" ::: "memory");
        #pragma unroll 1
        for (int k = 0; k < n; k++) asm volatile("fence.proxy.async.global; barrier.arrive 2, 32;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        DELAY();
        if (t == 32) {
            ARRIVE_EXPECT(&full, 16);
            BULK_LOAD(tile, x, 16, &full); /*@load*/
            WAIT(&full, 0);
        }
    }
}""",
        (Case(sizes.FENCE_EVENTS, one("missing-proxy-fence", "error", "load", "store")), Case(sizes.FENCE_EVENTS + 1)),
    ),
    Bound("waits_without_global_flags", GLOBAL_RESULT % "", (Case(0, one("missing-wait", "error", "read", "store")),)),
    Bound("waits_and_global_flags", GLOBAL_RESULT % POLL, (Case(0),)),
    Bound(
        "lanes_that_end",
        START
        + """
    __shared__ unsigned word;
    if (t == 0) { PUT(&word, 1); if (n) return; } /*@store*/
    __syncthreads();
    if (t == 33) GET(out[0], &word); /*@read*/
}""",
        (Case(0), Case(1)),
    ),
    Bound(
        "masks_that_differ",
        START
        + """
    unsigned mask = n && t >= 16 ? 0xffff0000u : 0xffffffffu;
    out[t] = __shfl_sync(mask, t, 0); /*@shuffle*/
}""",
        (Case(0), Case(1)),
        threads=32,
    ),
    Bound(
        "joins_in_functions",
        """__device__ __noinline__ void half(unsigned* out) {
    if (threadIdx.x < 16) __syncthreads(); /*@barrier*/
    out[threadIdx.x] = 1;
}
"""
        + START
        + """
    half(out);
    if (n) __syncthreads(); /*@later*/
}""",
        (Case(1, one("barrier-misuse", "error", "barrier", "later")), Case(0)),
        threads=32,
    ),
]


@pytest.mark.parametrize("given", one_in(8, [(b, c) for b in BOUNDS for c in b.cases], lambda given: f"{given[0].id}-{given[1].n}"))
def test_bound(given: tuple[Bound, Case]) -> None:
    bound, case = given
    report = report_of(bound, case.n)
    assert (told(report, bound.source), report.evicted > 0) == (case.found, case.evicted)
    assert (report.verdict == "incomplete") == case.evicted
