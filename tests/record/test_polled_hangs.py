"""Deadlocks of threads that poll memory, proven from the log of a launch that the host has stopped (session/executing/hangs.py)."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from leaving_support import SHADOW, Background

import consan
from consan.backends.cpu.decode.patience import PatientLoops
from consan.backends.cpu.decode.special import CLOCKS
from consan.checker.compiled.layouts import StoppedKind
from consan.checker.judging import spins
from consan.instrument.ptx import parse
from consan.instrument.record import leaving, module
from consan.session.executing import hangs
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

SOURCE = """
// Nobody stores the flag of CTA 0.
extern "C" __global__ void flag(unsigned* out) {
    volatile unsigned* flag = out + 64;
    if (blockIdx.x == 1) { out[0] = 1; __threadfence(); flag[1] = 1; }
    if (blockIdx.x == 0) { while (flag[0] == 0); __threadfence(); out[1] = out[0]; }
}
// The lock is never given back.
extern "C" __global__ void lock(unsigned* out) {
    while (atomicCAS(out + 64, 0, 1) != 0) __nanosleep(10);
    __threadfence();
    out[1] += 1;
}
// The same lock, which is looked at before it is tried: one head for two loops.
extern "C" __global__ void tested_lock(unsigned* out) {
    while (true) {
        while (((volatile unsigned*)out)[64] != 0);
        if (atomicCAS(out + 64, 0, 1) == 0) break;
    }
    __threadfence();
    out[1] += 1;
}
// Thread 0 of each CTA polls with a back-off, the others wait for it at a barrier.
extern "C" __global__ void beside_a_barrier(unsigned* out) {
    __shared__ unsigned value;
    if (threadIdx.x == 0) {
        unsigned ns = 8;
        value = 0;
        while (((volatile unsigned*)out)[64 + blockIdx.x] != 1) { __nanosleep(ns); if (ns < 256) ns *= 2; }
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
// The flag is in shared memory.
extern "C" __global__ void in_shared_memory(unsigned* out) {
    __shared__ volatile unsigned ready;
    if (threadIdx.x == 32) ready = 1;  // there is no such thread
    else { ready = 0; while (ready == 0) __nanosleep(10); }
    ((volatile unsigned*)out)[blockIdx.x] = 1;
}
// Two words are read at once.
extern "C" __global__ void words(unsigned* out) {
    unsigned x, y;
    do asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(out + 64));
    while (y != 1);
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %1};" :: "l"(out + 66), "r"(x));
}
// Not proven: the loop counts, and would end.
extern "C" __global__ void tries(unsigned* out) {
    volatile unsigned* flag = out + 64;
    if (blockIdx.x == 0) for (unsigned i = 0; i < 1u << 30 && flag[0] == 0; ++i);
}
// Not proven: CTA 1 counts, and would store the flag.
extern "C" __global__ void slow(unsigned* out) {
    volatile unsigned* flag = out + 64;
    if (blockIdx.x == 0) while (flag[0] == 0);
    if (blockIdx.x == 1) {
        unsigned i = 0;
        while (i < 1u << 30) asm volatile("add.u32 %0, %0, 1;" : "+r"(i));
        flag[0] = 1;
    }
}
"""
THREADS = {"beside_a_barrier": 64}


@pytest.fixture(params=[True, False], ids=["compact", "full"], autouse=True)
def _looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads look in some rounds only, as on a chip, and each barrier takes long. A clock counts who reads it."""
    monkeypatch.setattr(module, "COMPACT", request.param)
    monkeypatch.setitem(CLOCKS, "%clock", itertools.count(1).__next__)
    monkeypatch.setattr(leaving, "SLICE", 0x3F)
    monkeypatch.setattr(leaving, "LONG", 1)


def _launched(entry: str, *, alone: bool = True, **options: Any) -> tuple[consan.Report, int]:
    """The report of a launch that hangs, and how often the kernel was launched."""
    backend = Background()
    backend.hangs = True
    session = Session(SessionOptions.of({"engine": "record", "global_memory": "on", **options}), on=Device(backend, arena_bytes=SHADOW))
    session.alone = alone
    prepared = session.prepare(consan.Kernel(SOURCE, entry).module, name="k.cu")
    out = backend.alloc(4096)
    backend.write(out, bytes(4096))
    restore = lambda: backend.write(out, bytes(4096))  # noqa: E731
    session.launch(prepared, entry, (2, 1, 1), (THREADS.get(entry, 1), 1, 1), [out.to_bytes(8, "little")], restore=restore)
    return session.report(), backend.launches


@pytest.mark.parametrize("entry", ["flag", "lock", "tested_lock", "beside_a_barrier", "in_shared_memory", "words"])
def test_a_poll_that_nobody_ends(entry: str) -> None:
    report, launches = _launched(entry)
    assert (report.verdict, report.incomplete, launches) == ("violations", (), 1)
    (finding,) = [each for each in report.findings if each.kind == "deadlock"]
    spins = [waiter for waiter in finding.waiters if waiter["why"] == "spin"]
    assert finding.situation == ("lock" if entry == "lock" else "polled")
    assert {waiter["polls"].partition(" (")[2] for waiter in spins} <= {"value 0)", "value 1)", "shared offset 0, value 0)"}
    assert all(f"void {entry}" in SOURCE.split("extern")[_kernel_at(waiter["line"])] for waiter in spins)
    others = [waiter for waiter in finding.waiters if waiter not in spins]
    assert bool(others) == (entry == "beside_a_barrier")


def _kernel_at(line: int) -> int:
    return "\n".join(SOURCE.split("\n")[:line]).count("extern")


@pytest.mark.parametrize("entry", ["tries", "slow"])
def test_what_would_go_on(entry: str) -> None:
    """The time limit of the user is not taken twice."""
    report, launches = _launched(entry, timeout=30)
    assert (report.verdict, report.findings, launches) == ("incomplete", (), 1)
    assert f"{entry} did not run to its end" in report.incomplete[0]


def test_the_host_may_write_what_is_polled() -> None:
    report, launches = _launched("flag", alone=False, timeout=30)
    assert (report.verdict, report.findings, launches) == ("incomplete", (), 1)


def test_the_host_cannot_write_shared_memory() -> None:
    report, launches = _launched("in_shared_memory", alone=False)
    assert (report.verdict, [each.kind for each in report.findings], launches) == ("violations", ["deadlock"], 1)


AROUND = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 more)
{
.reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<3>;
ld.param.u64 %d1, [a]; mov.u32 %r3, 0;
OUTER:
mov.u32 %r2, 1;
LOOP:
ld.volatile.global.u32 %r1, [%d1];
setp.lt.u32 %p1, %r1, %r3;
@%p1 bra LOOP;
BEHIND
add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, 9;
@%p2 bra FROM;
ret;
}"""


@pytest.mark.parametrize("start", ["OUTER", "LOOP"])
@pytest.mark.parametrize(
    ("behind", "held"),
    [("", False), ("ld.param.u32 %r2, [more];", False), ("ld.global.u32 %r2, [%d1];", True), ("bar.sync 0;", True)],
)
def test_a_way_around_that_leaves_nothing_in_the_log(behind: str, held: bool, start: str) -> None:
    """A thread at the head may have come from the loop around it: then it has not read the word since."""
    (function,) = parse(AROUND.replace("BEHIND", behind).replace("FROM", start)).functions
    (read,) = (each for each in function.instructions() if each.opcode == "ld.volatile.global.u32")
    assert PatientLoops(function).held_at(read, read) is held


FAULTS = {
    "the memory has changed": (hangs, "unchanged", lambda *_: False, "flag"),
    "loops that count": (PatientLoops, "held_at", lambda *_: True, "tries"),
    "who does not wait": (spins, "StoppedKind", SimpleNamespace(FREE=-1, POLLS=StoppedKind.POLLS), "slow"),
}


@pytest.mark.parametrize("fault", [*list(FAULTS)[:2], pytest.param(list(FAULTS)[2], marks=pytest.mark.slow)])
def test_a_fault_in_the_proof(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, instead, entry = FAULTS[fault]
    right, _ = _launched(entry, timeout=30)
    monkeypatch.setattr(owner, name, instead)
    assert _launched(entry, timeout=30)[0].verdict != right.verdict
