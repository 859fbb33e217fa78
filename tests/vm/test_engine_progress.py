"""Hangs that the virtual machine proves without a timer, and loops that it proves nothing about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_support import Device, cuda

from consan.backends.cpu import LaunchStats
from consan.backends.cpu.decode import patience
from consan.backends.cpu.engine import progress, scheduler
from consan.instrument.ptx.mangled import source_name

HEAD = 'extern "C" __global__ void k(int* out, int* in) { int t = threadIdx.x; volatile int* flag = in; '
SHARED = HEAD + "__shared__ volatile int ready; __shared__ int lock; if (t == 0) { ready = 0; lock = 0; } __syncthreads(); "
HANGS = {
    "shared flag": SHARED + "if (t >= 32) while (ready == 0) {} __syncthreads(); ready = 1; }",
    "shared lock": SHARED + "while (atomicCAS(&lock, 0, 1) != 0) {} out[t] = 1; }",
    "global flag": HEAD + "while (flag[5] == 0) {} out[t] = 1; }",
    "atomic load": HEAD + "while (atomicAdd(in, 0) == 0) {} out[t] = 1; }",
    "backoff": HEAD + "int ns = 8; while (flag[0] == 0) { __nanosleep(ns); if (ns < 256) ns *= 2; } }",
    "vote": HEAD + "while (!__any_sync(~0u, flag[t] != 0)) {} out[t] = 1; }",
    "no end": HEAD + "for (;;) {} }",
    "local": HEAD + "volatile int seen[4]; do seen[t & 3] = flag[0]; while (!seen[t & 3]); }",
    "three loops": HEAD
    + "if (t < 32) while (flag[0] == 0) {} else if (t < 48) while (flag[1] == 0) {} else while (flag[2] == 0) {} out[t] = 1; }",
    "counts": HEAD + "int n = 0; while (flag[0] == 0) ++n; out[t] = n; }",
    "counts and waits by the clock": HEAD  # as libcu++ polls
    + "int n = 0; long long start = clock64(); while (flag[0] == 0) { if (n < 16) { ++n; continue; } long long past = clock64() - start; "
    + "if (past > 64000) __nanosleep(1000); else __nanosleep(past / 4 + 1); } out[t] = n; }",
    "a call": "__device__ __noinline__ int look(volatile int* p) { return *p; }" + HEAD + "while (look(in) == 0) {} out[t] = 1; }",
}
OPEN = {
    "counts": HEAD + "int n = 0; while (flag[0] == 0 && n < 2000000000) ++n; out[t] = n; }",
    "clock": HEAD + "while (flag[0] == 0) if (clock64() == 1) return; out[t] = 1; }",
    "stores": HEAD + "while (flag[0] == 0) *(volatile int*)&out[t] = 1; }",
    "counts in memory": HEAD + "while (flag[0] == 0) atomicAdd(&out[t], 1); }",
    "stores later": HEAD
    + """while (flag[0] == 0) asm volatile("st.async.release.gpu.global.u32 [%0], %1;" :: "l"(out + t), "r"(1) : "memory"); }""",
    "counts later": HEAD
    + """while (flag[0] == 0) asm volatile("red.async.release.gpu.global.add.u32 [%0], %1;" :: "l"(out + t), "r"(1) : "memory"); }""",
}
FINE = {
    "flags between CTAs": HEAD
    + "if (blockIdx.x == 0) { while (flag[1] == 0) {} out[t] = flag[2]; }"
    + "else if (t == 0) { int s = 1; for (int i = 0; i < 30000; ++i) s = s * 1103515245 + 12345; "
    + "flag[2] = s | 1; __threadfence(); flag[1] = 1; } }",
    "locks in turn": HEAD
    + "bool done = false; while (!done) if (atomicCAS(in, 0, 1) == 0) { out[t] += 1; __threadfence(); atomicExch(in, 0); done = true; } }",
    "a long loop": HEAD + "int s = t; for (int i = 0; i < 60000; ++i) s = s * 1103515245 + 12345; out[t] = s; }",
    "a clock": HEAD + "long long start = clock64(); while (clock64() - start < 300000000) {} out[t] = 1; }",
    "polls that return, in a loop that counts": HEAD
    + "int n = 0; for (int i = 0; i < 20000; ++i) do n += clock64() & 1; while (flag[0] != 0); out[t] = n; }",
    "a way out that one round in many passes": HEAD
    + "int n = 0; while (flag[0] == 0) { if (++n % 4096 == 0) { if (flag[1] == 0) break; } } out[t] = n; }",
    "a bounded spin": HEAD + "int n = 0; while (flag[0] == 0 && n < 20000) ++n; out[t] = n; }",
}


def ending(source: str, seed: int, timeout: float | None = 120.0) -> LaunchStats:
    """How a launch of two CTAs of two warps ends, on memory of zeros."""
    device = Device(cuda(source))
    out, given = device.buffer(np.zeros(256, np.uint32)), device.buffer(np.zeros(64, np.uint32))
    return device.launch("k", 2, 64, out, given, seed=seed, timeout=timeout)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("name", HANGS)
def test_a_loop_that_can_do_nothing_new_is_a_deadlock(name: str, seed: int) -> None:
    stats = ending(HANGS[name], seed)
    assert (stats.ending, stats.timed_out) == ("deadlock", False)
    assert {blocked.why for blocked in stats.blocked} <= {"spin", "loop", "barrier"}
    assert all(blocked.polled for blocked in stats.blocked if blocked.why == "spin")
    assert ("loop" in {blocked.why for blocked in stats.blocked}) == (name == "no end")


def test_what_is_polled() -> None:
    for name, expected in (("shared flag", ("shared", "ready", 0, False)), ("shared lock", ("shared", "lock", 1, True))):
        polled = {poll for blocked in ending(HANGS[name], 0).blocked for poll in blocked.polled}
        assert {(poll.space, poll.name, poll.value, poll.lock) for poll in polled} == {expected}
    (flag,) = {poll for blocked in ending(HANGS["global flag"], 0).blocked for poll in blocked.polled}
    assert (flag.space, flag.name, flag.inside, flag.nbytes, flag.value) == ("global", "argument 2", 20, 4, 0)
    assert all(blocked.open for blocked in ending(HANGS["global flag"], 0).blocked)
    assert not any(blocked.open for blocked in ending(HANGS["shared flag"], 0).blocked)


@pytest.mark.parametrize("name", OPEN)
def test_of_other_loops_nothing_is_proven(name: str) -> None:
    stats = ending(OPEN[name], 0, timeout=0.5)
    assert (stats.ending, stats.deadlocked) == ("timeout", False)
    assert {blocked.why for blocked in stats.blocked} == {"running"}


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", FINE)
def test_kernels_that_end_are_left_alone(name: str, seed: int) -> None:
    assert ending(FINE[name], seed, timeout=None).completed


def test_faults_planted_in_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition of a loop that only memory ends keeps a kernel that ends from being taken for one that hangs."""
    faults: dict[str, tuple[object, str, Any]] = {
        "a way out that one round in many passes": (patience, "has_cycle", lambda edges, within: False),
        "a bounded spin": (patience, "steady_registers", lambda inside: lambda key: True),
    }
    for name, (owner, attribute, broken) in faults.items():
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, broken)
            assert ending(FINE[name], 0).deadlocked, name


@pytest.mark.parametrize("name", ["counts", "clock"])
def test_without_a_time_limit_polling_is_given_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "IDLE_SECONDS", 0.5)
    assert progress.IDLE_SECONDS >= 60
    stats = ending(OPEN[name], 0, timeout=None)
    assert (stats.ending, stats.idle, stats.timed_out) == ("timeout", 0.5, False)
    assert {blocked.opcode for blocked in stats.blocked} == {"ld.volatile.global.u32"}


@pytest.mark.parametrize(("symbol", "name"), [("_ZZ1kE4flag", "flag"), ("plain", "plain"), ("_ZN2ns4lockE", "lock"), ("_Z", "_Z")])
def test_names_of_variables(symbol: str, name: str) -> None:
    assert source_name(symbol) == name
