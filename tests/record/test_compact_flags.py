"""Compact logs of modules whose threads may synchronise through memory: what the host computes is what full logs hold, word for word.

Each thread polls words of its own, so that what it reads does not depend on the schedule. Readings of clocks are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compact_support import Work, compared, lanes
from test_deduplication import SOURCE

import consan
from consan.instrument import effects
from consan.instrument.record.analyses import computed
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text import polls, words

CTAS = 4
HELPERS = """
__device__ int look(int* flag) { int v; asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); return v; }
__device__ void set(int* flag, int v) { asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" :: "l"(flag), "r"(v) : "memory"); }
__device__ void put(int* p, int v) {
    asm volatile("st.shared.b32 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(p)), "r"(v) : "memory");
}
__device__ long long wide(int* flag) {
    int low, high; asm volatile("ld.relaxed.gpu.global.v2.b32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(flag) : "memory");
    return low + high;
}
"""
OWN = "int* own = out + 2048 + 4 * (blockIdx.x * 64 + t); "
OWN += 'asm volatile("{ .reg .b64 a; cvta.to.global.u64 a, %0; mov.b64 %0, a; }" : "+l"(own)); '

BODIES = {
    "no poll": "set(own, t); sum = tile[look(own) & 127]; if (sum & 1) tile[t] = sum;",
    "rounds that repeat": "for (int i = 0; i < 6; ++i) { sum += look(own); if (i == 3) set(own, 5); }",
    "a counter of rounds": "int n = 0; while (n < 5 + (out[t] & 1) && look(own) == 0) ++n; sum = tile[n]; set(own, n);",
    "rounds with events that leave no words": "for (int i = 0; i < 4; ++i) { sum += look(own); put(tile + t, 1); } set(own, sum);",
    "rounds with other rounds": "for (int i = 0; i < 3; ++i) { int n = 0; while (++n < 4 && look(own) == i); sum += n + tile[t + i]; "
    "set(own, i + 1); }",
    "two polls": "for (int i = 0; i < 5; ++i) { sum += look(own); sum += look(own + 1); if (i == 3) set(own + 1, i); }",
    "a swap that fails": "int n = 0; while (atomicCAS(own, 7, 8) != 7 && n++ < 4) if (n == 3) set(own, 7); sum = n;",
    "a swap that succeeds": "for (int i = 0; i < 4; ++i) sum += atomicCAS(own, 0, 0); set(own, 1);",
    "an exchange that changes nothing": "int n = 0; while (atomicExch(own, 1) && n++ < 4) if (n == 3) set(own, 0); sum = n;",
    "a look by an addition": "int n = 0; while (atomicAdd(own, 0) == 0 && n++ < 4) if (n == 3) set(own, 5); sum = n;",
    "bits that are set": "int n = 0; while ((atomicOr(own, 6) & 1) == 0 && n++ < 4) if (n == 3) set(own, 1); sum = n;",
    "bits that are cleared": "int n = 0; while ((atomicAnd(own, 6) & 4) == 0 && n++ < 4) if (n == 3) set(own, 7); sum = n;",
    "two words": "for (int i = 0; i < 4; ++i) { sum += (int)wide(own); if (i == 2) set(own + 1, 3); }",
    "eight bytes": "auto p = (unsigned long long*)own; for (int i = 0; i < 6; ++i) { sum += atomicCAS(p, 1ull << 40, 0) >> 32; "
    "if (i == 3) atomicExch(p, 1ull << 33 | 1); }",
    "a ticket": "for (int i = 0; i < 3; ++i) { int k = atomicAdd(own, 1 + i); if (k > 2) break; tile[k * 64 & 127] = t; }",
    "a way that only the first round takes": "int x = 3; bool seen = false; for (int i = 0; i < 4; ++i) { "
    'if (look(own) == 0 && !seen) { asm volatile("add.s32 %0, %0, 4;" : "+r"(x)); seen = true; } } sum = tile[x]; set(own, 1);',
    "shared memory": "for (int i = 0; i < 4; ++i) { sum += *(volatile int*)(tile + t); if (i == 2) *(volatile int*)(tile + t) = 9; } "
    "set(own, look(own));",
}


def _rolled(body: str) -> str:
    return body.replace("for (", '_Pragma("unroll 1") for (').replace("while (", '_Pragma("unroll 1") while (')


def _work(body: str) -> Work:
    kernel = consan.Kernel(HELPERS + SOURCE.replace("BODY", OWN + _rolled(body)), entry="kernel", arch="sm_80")
    data = np.concatenate([np.arange(2048, dtype=np.int32) * 7, np.zeros(4 * CTAS * 64, np.int32)])
    return Work(kernel.ptx, "kernel", (CTAS, 1, 1), (64, 1, 1), [data, np.int32(-1)], global_races=True)


@pytest.mark.parametrize("name", BODIES)
def test_the_host_computes_full_logs(name: str) -> None:
    work = _work(BODIES[name])
    assert work.recorded(compact=True).kernels[0].mode is Mode.SYNCED
    assert compared(work) == ""


def test_rounds_that_repeat_leave_nothing() -> None:
    """Six rounds of a poll that read two values are two blocks, and a store is one."""
    work = _work(BODIES["rounds that repeat"])
    recorded = work.recorded(compact=True)
    polled = {t.number for t in recorded.blocks.templates if any(isinstance(e, effects.Observe) for e in t.events)}
    launch = work.run(recorded)
    assert [sum(block[0] in polled for block in lane) for lane in lanes(launch, 1, recorded)] == [3] * 64


def _known_rounds(old: Any) -> Any:
    return lambda *_: set[int]()


def _never(old: Any) -> Any:
    return lambda *_: ""


def _stays_ahead(old: Any) -> Any:
    return lambda self, node: re.sub(r"@%__consan_pq mov.b64 %__consan_c.*\n", "", old(self, node))


def _one_copy_less(old: Any) -> Any:
    def reserve(self: Any, count: int) -> tuple[int, int, str]:
        first, stored, copies = old(self, count)
        return first, stored, "".join(copies.splitlines(keepends=True)[:-2])

    return reserve


# What is replaced in which object, and a kernel that shows it.
FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any], str]] = {
    "what rounds count is known": (computed, "on_cycles", _known_rounds, "rounds with other rounds"),
    "no event interrupts a poll": (polls, "interrupted", _never, "rounds with events that leave no words"),
    "the cursor does not go back": (polls.RecordedPolls, "forward", _stays_ahead, "rounds that repeat"),
    "a word of an access is not copied": (words.Words, "reserve", _one_copy_less, "a ticket"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, change, name = FAULTS[fault]
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert compared(_work(BODIES[name])) not in ("", "full")
