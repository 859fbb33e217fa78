"""Functions that poll once in each call, and are called in a loop: rounds that repeat leave nothing, and others are in the log."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compact_support import Work, lanes

import consan
from consan.instrument import effects
from consan.instrument.record.text import text

SOURCE = """
__device__ __noinline__ int look(volatile int* flag) { return *flag; }
__device__ __noinline__ int other(volatile int* flag) { return *flag; }
extern "C" __global__ void k(volatile int* flags, int* out) {
    volatile int* own = flags + 2 * threadIdx.x;
    int sum = 0;
    BODY
    *own = sum;
    out[threadIdx.x] = sum;
}
"""
BODIES = {
    "rounds that repeat": ("for (int i = 0; i < 6; ++i) sum += look(own);", 1),
    "another value": ("for (int i = 0; i < 6; ++i) { sum += look(own); if (i == 3) *own = 5; }", 2),
    "an event between": ("for (int i = 0; i < 6; ++i) { sum += look(own); out[threadIdx.x] = i; }", 6),
    "another address": ("for (int i = 0; i < 6; ++i) sum += look(own + (i & 1));", 6),
    "another poll": ("for (int i = 0; i < 3; ++i) { sum += look(own); sum += other(own); }", 6),
}


def _polls_of(name: str) -> set[int]:
    """How many polls the lanes have in the log."""
    kernel = consan.Kernel(SOURCE.replace("BODY", BODIES[name][0].replace("for (", '_Pragma("unroll 1") for (')), "k", arch="sm_80")
    work = Work(kernel.ptx, "k", (1, 1, 1), (64, 1, 1), [np.zeros(128, np.int32), np.zeros(64, np.int32)], global_races=True)
    recorded = work.recorded(compact=True)
    reads = {t.number for t in recorded.blocks.templates if any(isinstance(e, effects.Observe) and not e.writes for e in t.events)}
    found = lanes(work.run(recorded), 0, recorded)
    return {sum(block[0] in reads for block in lane) for lane in found}


@pytest.mark.parametrize("name", BODIES)
def test_only_rounds_that_repeat_leave_nothing(name: str) -> None:
    assert _polls_of(name) == {BODIES[name][1]}


def _any_poll(old: Any) -> Any:
    return lambda name, number, same: re.sub(r"(%__consan_v), \d+;\n$", r"\1, \1;\n", old(name, number, same))


def _nothing(old: Any) -> Any:
    return lambda *_: ""


@pytest.mark.parametrize(
    ("part", "fault", "name"),
    [("resume_poll", _any_poll, "another poll"), ("suspend_poll", _nothing, "rounds that repeat")],
    ids=["any poll", "not kept"],
)
def test_a_fault_is_noticed(part: str, fault: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, part, fault(getattr(text, part)))
    assert _polls_of(name) != {BODIES[name][1]}


def test_what_an_earlier_launch_has_polled_is_forgotten() -> None:
    """A kernel with recorded functions begins with no poll: its number is zero, which no poll has."""
    assert f"[%__consan_s+{text.POLL + 24}]" in text.forget_poll()
    assert text.forget_poll().startswith("mov.b64 %__consan_v, 0;")
