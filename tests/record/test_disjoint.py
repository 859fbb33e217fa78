"""Rounds whose accesses are apart are not compared (checker/source/cluster/milestones.hpp): a replay of all accesses finds the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from compact_support import Work
from planted import break_checker, quick
from test_repeated_iterations import ROUNDS, both_replays, recorded_loop

import consan
from consan.checker.compiled import replay as checker
from consan.instrument.record import Recorded

STEPS, CELLS = 5, 8  # of a round, and words that say what a step does
RANDOM = """
extern "C" __global__ void kernel(int* out, const int* steps) {
    __shared__ int tile[64];
    int t = threadIdx.x, sum = 0;
    if (t < steps[0]) tile[t] = t;
    __syncthreads();
    #pragma unroll 1
    for (int i = 0; i < 6; ++i)
        #pragma unroll 1
        for (const int* s = steps + 1; s < steps + 1 + STEPS * CELLS; s += CELLS) {
            int at = (s[0] * t + s[1] * i + s[2]) & 63;
            if ((t & s[3]) == s[4] && (s[5] < 0 || s[5] == i)) {
                if (s[6] == 0) tile[at] = i;
                else if (s[6] == 1) sum += tile[at];
                else if (s[6] == 2) ((short*)tile)[at] = i;
                else __syncwarp(__activemask());
            }
            if (s[7] == 1) __syncthreads();
        }
    out[t] = sum;
}
"""


def _random_steps(random: np.random.Generator) -> npt.NDArray[np.int32]:
    """Steps that are mostly apart: a thread's place shifts in each round. A step may be of one round, or of some threads."""
    made = np.zeros((STEPS, CELLS), np.int32)
    made[:, 0] = random.choice([1, 1, 1, 3, 63, 2], STEPS)
    made[:, 1] = random.choice([0, 1, 5, 8, 63], STEPS)
    made[:, 2] = random.choice([0, 0, 0, 1, 32], STEPS)
    made[:, 3] = random.choice([0, 0, 0, 32, 63], STEPS)
    made[:, 4] = random.integers(0, 64, STEPS) & made[:, 3]
    made[:, 5] = random.choice([-1, -1, -1, 0, 3, 5], STEPS)  # the round: all, the first, one, the last
    made[:, 6] = random.choice([0, 0, 1, 1, 2, 3], STEPS, p=[0.25, 0.25, 0.2, 0.2, 0.05, 0.05])
    made[:, 7] = random.random(STEPS) < 0.7
    return np.concatenate([[random.choice([64, 64, 60])], made.ravel()]).astype(np.int32)


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_random_rounds(count: int) -> None:
    """Races in all rounds, in the first, in the last, and where a ring wraps round. Each comes out as where each access is replayed."""
    text = RANDOM.replace("STEPS", str(STEPS)).replace("CELLS", str(CELLS))
    kernel, random = consan.Kernel(text, entry="kernel", arch="sm_80"), np.random.default_rng(count)
    recorded: Recorded | None = None
    racy = passed = clean = 0
    for number in range(count):
        work = Work(kernel.ptx, "kernel", (1, 1, 1), (64, 1, 1), [np.zeros(64, np.int32), _random_steps(random)])
        recorded = recorded or work.recorded(compact=False)
        one, same = both_replays(recorded, work.run(recorded).histories([0])[0], descending=bool(number & 1))
        assert same
        racy, clean, passed = racy + bool(len(one.records)), clean + (not len(one.records)), passed + bool(one.passed)
    assert min(racy, clean, passed) > count // 5


# A fault, and a loop of test_repeated_iterations.py that shows it.
FAULTS = {
    "stores among loads": (quick("disjoint.hpp", "if (!alone && (writes || known.written)) return false;", ""), "a store among loads"),
    "stores of two": (quick("disjoint.hpp", "(writes || known.written)", "known.written && !writes"), "two store"),
    "rows of several": (quick("disjoint.hpp", "if (row) thread = MANY;", ""), "rows of a lane"),
    "what is not initialised": (
        quick("milestones.hpp", "initialised_.holds(offset, bytes) || (STORES && is_stored(offset, bytes))", "true"),
        "loads of what nobody wrote",
    ),
    "what is stored": (
        quick("milestones.hpp", "for (const Access &store : stores_) initialised_.add(store);", ""),
        "first written there",
    ),
    "events of the first look": (
        quick("milestones.hpp", "in_vain = std::exchange(events, 0)", "in_vain = events"),
        "a load before a store",
    ),
    "threads that exit": (quick("milestones.hpp", "(ends[0] && ends[1])", "false"), "a warp ends behind loads"),
    "barriers of some": (
        quick("milestones.hpp", "barrier.id() == 0 && barrier.threads() == NOTHING", "true"),
        "a warp by itself behind loads",
    ),
    "loads are counted": (
        quick("milestones.hpp", "passed_ += events, output_.lane_events += events;", "passed_ += events;"),
        "loads alone",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted, name = FAULTS[fault]
    given = [recorded_loop(name, round_) for round_ in (12, ROUNDS - 1, ROUNDS - 2)]
    break_checker(monkeypatch, tmp_path, (checker,), *planted)
    assert not all(both_replays(*each, descending=descending)[1] for each in given for descending in (False, True))
