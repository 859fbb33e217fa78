"""Deadlocks that the kernel proves itself (runtime/deadlock.cuh): what is reported, that the launch ends, and that the device works on.

The virtual machine parks threads at try_wait and finds deadlocks by its own means. So on the CPU the kernels poll with test_wait,
which leaves registering, proof and leaving to the hooks; on a GPU they wait in both ways.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from device_support import Bench, compiled, markers

from consan.instrument.ptx import parse
from consan.instrument.waits.waits import pure_waits
from consan.reports.model import Finding
from consan.toolchain.assemble import assemble

SOURCE = """
typedef unsigned long long u64;
#define WAIT "mbarrier.test_wait"
__device__ unsigned shared(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, unsigned n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared(b)), "r"(n) : "memory"); }
__device__ void arrive(u64* b) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" :: "r"(shared(b)) : "memory"); }
__device__ void expect(u64* b, unsigned n) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" :: "r"(shared(b)), "r"(n) : "memory");
}
__device__ void copy(void* to, const void* from, unsigned n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(shared(to)), "l"(from), "r"(n), "r"(shared(b)) : "memory");
}
#define LOOP(B, PARITY) \\
    asm volatile("{ .reg .pred p; AGAIN: " WAIT ".parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN; }" \\
                 :: "r"(shared(B)), "r"(PARITY) : "memory")
__device__ bool ready(u64* b, unsigned parity) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared(b)), "r"(parity) : "memory");
    return done;
}
#define BARRIER(ID, N) asm volatile("bar.sync " #ID ", " #N ";" ::: "memory")

// The announcement is of twice the bytes that come.
extern "C" __global__ void bytes(const unsigned* in, unsigned* out) {
    __shared__ alignas(128) unsigned tile[64];
    __shared__ u64 full;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t == 0) { expect(&full, 512); copy(tile, in, 256, &full); }
    LOOP(&full, 0);                                     /*@bytes*/
    out[t] = tile[t % 64];
}

// One arrival more is expected than there are threads; the second phase of a barrier that was fine the first time.
extern "C" __global__ void count(unsigned* out) {
    __shared__ u64 b[2];
    const unsigned t = threadIdx.x;
    if (t == 0) { init(&b[0], blockDim.x + 1); init(&b[1], blockDim.x); }
    __syncthreads();
    arrive(&b[1]);
    LOOP(&b[1], 0);
    arrive(&b[0]);
    LOOP(&b[0], 0);                                     /*@count*/
    out[t] = 1;
}

// A ring: warp 0 fills, warp 1 takes. In CTA `bad` the second round is not answered.
extern "C" __global__ void ring(unsigned rounds, unsigned bad, unsigned* out) {
    __shared__ u64 full, empty;
    __shared__ unsigned value[32];
    const unsigned t = threadIdx.x, lane = t % 32;
    if (t == 0) { init(&full, 32); init(&empty, 32); }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        if (t < 32) {
            LOOP(&empty, round & 1 ^ 1);                /*@empty*/
            value[lane] = round + lane;
            arrive(&full);
        } else {
            LOOP(&full, round & 1);                     /*@full*/
            sum += value[lane];
            if (blockIdx.x != bad || round == 0) arrive(&empty);
        }
    }
    if (t >= 32) out[blockIdx.x * 32 + lane] = sum;
}

// Warps 0 and 1 are two of three that barrier 1 wants; warp 2 waits for what they would say after it.
extern "C" __global__ void mixed(unsigned* out) {
    __shared__ u64 b;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&b, 64);
    __syncthreads();
    if (t < 64) { BARRIER(1, 96); /*@named*/ arrive(&b); }
    else { LOOP(&b, 0); /*@mbarrier*/ BARRIER(1, 96); }
    out[t] = 1;
}

// Each warp waits at a barrier that wants a second one; the last to come proves it. The module has an mbarrier elsewhere.
extern "C" __global__ void named(unsigned* out) {
    const unsigned t = threadIdx.x;
    if (t < 32) BARRIER(1, 64);                         /*@one*/
    else if (t < 64) BARRIER(2, 64);                    /*@two*/
    else BARRIER(3, 128);                               /*@three*/
    out[t] = 1;
}

// Warp 0 waits for arrivals of warps that leave without them: the last to exit proves it.
extern "C" __global__ void exits(unsigned* out) {
    __shared__ u64 b;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&b, 64);
    __syncthreads();
    if (t >= 32) { for (unsigned i = 0; i < t; ++i) out[t] = i; return; }
    arrive(&b);
    LOOP(&b, 0);                                        /*@left*/
    out[t] = 1;
}

// Some threads are at the barrier of the whole CTA, one waits for what comes after it.
extern "C" __global__ void whole(unsigned* out) {
    __shared__ u64 b;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&b, 1);
    __syncthreads();
    if (t >= 32) { LOOP(&b, 0); /*@early*/ }
    __syncthreads();                                    /*@late*/
    if (t == 0) arrive(&b);
    out[t] = 1;
}

// Right, and full of waits: looks in passing, waits that end by a limit, barriers of both kinds, threads that leave in between.
extern "C" __global__ void fine(unsigned rounds, unsigned* out) {
    __shared__ u64 go, back;
    __shared__ unsigned value[128];
    const unsigned t = threadIdx.x;
    if (t == 0) { init(&go, 32); init(&back, 64); }
    __syncthreads();
    if (t >= 96) return;
    unsigned seen = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        if (t < 32) {
            bool looked = ready(&back, round & 1);      // fails: the others wait for this thread's arrival
            for (int i = 0; i < 3 && !ready(&back, round & 1); ++i) looked = false;
            value[t] = round + t;
            arrive(&go);
            if (!looked) LOOP(&back, round & 1);
        } else {
            LOOP(&go, round & 1);
            seen += value[t % 32];
            BARRIER(1, 64);
            arrive(&back);
        }
        if (round % 2) BARRIER(2, 96);
    }
    out[blockIdx.x * 96 + t] = seen;
}

// A thread spins on memory that nobody writes while the others wait for it. Nothing is proven on a GPU, nor where it may end by itself.
extern "C" __global__ void spins(volatile unsigned* flag, unsigned* out, int counts) {
    __shared__ u64 b;
    const unsigned t = threadIdx.x;
    if (t == 0) init(&b, 1);
    __syncthreads();
    unsigned looks = 0;
    if (t < 32) { if (t == 0) { while (*flag == 0 && looks < 0xFFFFFFF0u) { looks += counts; } arrive(&b); } }   /*@spin*/
    else if (t < 64) LOOP(&b, 0);
    else BARRIER(1, 96);
    out[t] = 1 + (looks >> 31);
}
"""
LINES = {name: line for line, name in markers(SOURCE).items()}


def _source(wait: str) -> str:
    return SOURCE.replace('#define WAIT "mbarrier.test_wait"', f'#define WAIT "mbarrier.{wait}"')


@pytest.fixture(params=["cpu-test_wait", *(pytest.param(f"gpu-{wait}", marks=pytest.mark.gpu) for wait in ("test_wait", "try_wait"))])
def bench(request: pytest.FixtureRequest) -> Bench:
    """A session with the kernels."""
    device, _, wait = request.param.partition("-")
    if device == "gpu":
        request.getfixturevalue("gpu")
    return Bench(device, _source(wait))


def _ends(bench: Bench, entry: str, grid: int, block: int, *args: Any) -> Finding:
    """Launch, see that it ends, that nothing but a deadlock is found, and that the device works on."""
    started = time.monotonic()
    bench.launch(entry, grid, block, *args)
    bench.backend.synchronize()
    assert time.monotonic() - started < 60
    out = bench.zeros(4 * 96)
    bench.launch("fine", 4, 128, 4, out)
    assert bench.array(out, 4 * 96).reshape(4, 96)[:, 32:].tolist() == [[4 * (t % 32) + 6 for t in range(64)]] * 4
    report = bench.report()
    assert not bench.session.device_lost
    assert {finding.kernel for finding in report.findings} == {entry}
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.severity, report.incomplete) == ("violations", "deadlock", "error", ())
    assert finding.pair == ()
    return finding


def _waits(finding: Finding) -> dict[str, int]:
    """Marked lines at which threads wait, and how many do."""
    names = {line: name for name, line in LINES.items()}
    return {names.get(waiter["line"], str(waiter["line"])): waiter["threads"] for waiter in finding.waiters}


def test_bytes_that_do_not_come(bench: Bench) -> None:
    finding = _ends(bench, "bytes", 2, 96, bench.buffer(np.arange(64, dtype=np.uint32)), bench.zeros(96))
    assert _waits(finding) == {"bytes": 96}
    assert finding.barrier is not None
    assert finding.barrier.items() >= {"phase": 0, "parity": 0, "pending": 0, "expected": 1, "tx": 256}.items()
    assert finding.ctas == 2


def test_an_arrival_too_few(bench: Bench) -> None:
    finding = _ends(bench, "count", 1, 70, bench.zeros(70))
    assert _waits(finding) == {"count": 70}
    assert finding.barrier is not None
    assert finding.barrier.items() >= {"phase": 0, "pending": 1, "expected": 71, "tx": 0}.items()
    assert "1 of 71 arrivals" in finding.missing


def test_one_of_two_ctas(bench: Bench) -> None:
    out = bench.zeros(64)
    finding = _ends(bench, "ring", 2, 64, 4, 1, out)
    assert _waits(finding) == {"empty": 32, "full": 32}
    assert {tuple(waiter["block"]) for waiter in finding.waiters} == {(1, 0, 0)}
    assert {waiter["phase"] for waiter in finding.waiters} == {1, 2}
    assert finding.ctas == 1
    assert bench.array(out, 64).tolist() == [4 * lane + 6 for lane in range(32)] + [0] * 32


def test_a_named_barrier_and_an_mbarrier(bench: Bench) -> None:
    finding = _ends(bench, "mixed", 3, 96, bench.zeros(96))
    assert _waits(finding) == {"named": 64, "mbarrier": 32}
    (named,) = [waiter for waiter in finding.waiters if waiter["why"] == "barrier"]
    assert (named["barrier"], named["arrived"], named["expected"]) == (1, 64, 96)
    assert "barrier 1 and phase 0 of the mbarrier" in finding.message


def test_named_barriers_alone(bench: Bench) -> None:
    finding = _ends(bench, "named", 2, 128, bench.zeros(128))
    assert _waits(finding) == {"one": 32, "two": 32, "three": 64}


def test_who_was_waited_for_has_exited(bench: Bench) -> None:
    finding = _ends(bench, "exits", 2, 96, bench.zeros(96))
    assert _waits(finding) == {"left": 32}


def test_the_barrier_of_the_whole_cta(bench: Bench) -> None:
    finding = _ends(bench, "whole", 2, 128, bench.zeros(128))
    assert _waits(finding) == {"early": 96, "late": 32}


def test_nothing_is_proven_of_a_kernel_that_goes_on(bench: Bench) -> None:
    grid, rounds = (4, 12) if bench.on_cpu else (2000, 400)
    out, ring = bench.zeros(grid * 96), bench.zeros(grid * 32)
    bench.launch("fine", grid, 128, rounds, out)
    bench.launch("ring", grid, 64, rounds, grid, ring)
    triangle = rounds * (rounds - 1) // 2
    assert (bench.array(out, grid * 96).reshape(grid, 96)[:, 32:] == [rounds * (t % 32) + triangle for t in range(64)]).all()
    assert (bench.array(ring, grid * 32).reshape(grid, 32) == [rounds * lane + triangle for lane in range(32)]).all()
    report = bench.report()
    assert (report.verdict, report.findings) == ("clean", ())


@pytest.mark.slow  # eight seconds, and test_endings.py has a kernel that spins
def test_a_spin_is_the_watchdogs(device: str) -> None:
    bench = Bench(device, SOURCE, timeout=8.0)  # for both kernels, also on a busy machine
    bench.launch("spins", 2, 96, bench.zeros(1), bench.zeros(96), 1)
    out = bench.zeros(96)
    bench.launch("fine", 1, 128, 2, out)
    assert bench.array(out, 96)[32:].tolist() == [2 * (t % 32) + 1 for t in range(64)]
    report = bench.report()
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert "did not run to its end: stopped after 8 s (--timeout SECONDS)" in report.incomplete[0]
    assert not bench.session.device_lost


@pytest.mark.parametrize("engine", ["record", pytest.param("inline", marks=pytest.mark.slow)])
def test_a_spin_that_does_not_count_is_proven_by_the_virtual_machine(engine: str) -> None:
    bench = Bench("cpu", SOURCE, engine=engine, timeout=600.0)  # by hooks a round takes a thousand times as long
    bench.launch("spins", 2, 96, bench.zeros(1), bench.zeros(96), 0)
    report = bench.report()
    (finding,) = (found for found in report.findings if found.severity == "error")
    assert (finding.kind, report.incomplete) == ("deadlock", ())
    assert {LINES["spin"]} < {waiter["line"] for waiter in finding.waiters}
    assert "argument 1 (value 0)" in finding.message


def test_try_wait_on_the_machine_is_reported_once() -> None:
    """Time-outs of try_wait (seeds other than 0) let threads register before they are parked."""
    for seed in (0, 3):
        bench = Bench("cpu", _source("try_wait"), seed=seed)
        bench.launch("ring", 2, 64, 4, 1, bench.zeros(64))
        (finding,) = bench.report().findings
        assert (finding.kind, {waiter["line"] for waiter in finding.waiters}) == ("deadlock", {LINES["empty"], LINES["full"]})


@pytest.mark.parametrize("fast", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fast", "best"])
def test_the_kernels_assemble(device: str, fast: bool) -> None:
    bench = Bench(device, _source("try_wait"))
    assert bench.prepared is not None
    assembled = assemble(bench.prepared.instrumented.ptx, "sm_90a", fast=fast)
    assert not [warning for warning in assembled.warnings if "C75" in warning]


PURE = {
    "triton": "A: {try} @!p bra.uni A;",
    "cutlass": "A: {try} @p bra B; bra A; B:",
    "value": "A: {test} selp.b32 r, 1, 0, p; setp.eq.s32 q, r, 0; @q bra A;",
    "short": "A: {test} selp.u16 h, 1, 0, p; and.b16 h, h, 255; setp.ne.s16 q, h, 0; @!q bra A;",
    "sleeps": "A: {test} @p bra B; add.u32 r, r, 1; setp.lt.u32 q, r, 64; @q bra A; nanosleep.u32 100; bra A; B:",
}
OTHER = {
    "look": "{try}",
    "limit": "A: {try} @p bra B; add.u32 r, r, 1; setp.lt.u32 q, r, 64; @q bra A; B:",
    "works": "A: {try} @p bra B; st.shared.u32 [a+8], r; bra A; B:",
    "signals": "A: {try} @p bra B; mbarrier.arrive.shared::cta.b64 s, [a+8]; bra A; B:",
    "exits": "A: {try} @p bra B; @q exit; bra A; B:",
    "once more": "{try} @p bra B; mbarrier.test_wait.parity.shared::cta.b64 q, [a], n; B:",
    "success goes on": "A: {try} @p bra A;",
}
_INSTRUCTIONS = {f"{{{word}}}": f"mbarrier.{word}_wait.parity.shared::cta.b64 p, [a], n;" for word in ("try", "test")}


@pytest.mark.parametrize("name", [*PURE, *OTHER])
def test_which_waits_do_nothing_else(name: str) -> None:
    registers = ".reg .pred p, q; .reg .b16 h; .reg .b32 a, n, r; .reg .b64 s;"
    body = (PURE | OTHER)[name]
    for word, instruction in _INSTRUCTIONS.items():
        body = body.replace(word, instruction)
    text = f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{ {registers}\n{body}\nret; }}\n"
    (function,) = parse(text).functions
    assert function.body is not None
    waits = [i for i in function.body.instructions() if i.parts[:2] in (("mbarrier", "try_wait"), ("mbarrier", "test_wait"))]
    assert len(pure_waits(function, waits)) == (1 if name in PURE else 0)


def test_compiled_waits_are_recognised() -> None:
    module = parse(compiled(SOURCE))
    counts = {}
    for function in module.functions:
        assert function.body is not None
        waits = [i for i in function.body.instructions() if i.parts[:2] == ("mbarrier", "test_wait")]
        counts[function.name] = (len(waits), len(pure_waits(function, waits)))
    looks, pure = counts.pop("fine")
    assert 2 <= pure < looks
    assert {name for name, (waits, _) in counts.items() if not waits} == {"named"}
    assert all(waits == pure for waits, pure in counts.values())
