"""The kernels of several ranks in this folder, launched as one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import consan
from consan.reports.model import Report

FOLDER = Path(__file__).parent
THREADS, VALUES, SLOTS = 32, 128, 5
Results = np.ndarray[Any, Any]


def _differ(found: list[Results], right: list[Results]) -> bool:
    """A rank has used values of a later round."""
    return any(not np.array_equal(one, other) for one, other in zip(found, right, strict=True))


def _seen(found: list[Results]) -> set[float]:
    """The signals that the ranks have seen in the second round."""
    return {float(value) for out in found for value in out[2 * THREADS :][: len(found)]}


# By file: the fault that a macro plants, and the kind of its findings.
FAULTS: dict[str, dict[str, str]] = {
    "one_shot": {"NO_START": "global-race", "NO_END": "global-race", "GPU_SCOPE": "scope"},
    "signals_reset": {"NOT_RESET": "global-race", "RESET_EARLY": "global-race"},
    "two_shot": {"NO_MIDDLE": "global-race"},
    "ring_all_gather": {"NO_WAIT": "global-race", "WEAK_FLAG": "global-race"},
    "put_with_signal": {"SIGNAL_FIRST": "global-race", "RELAXED": "global-race", "WRONG_SLOT": "global-race", "GPU_FENCE": "scope"},
    "double_buffer": {"ONE_BUFFER": "global-race"},
    "dispatch": {"COUNTS_FIRST": "global-race"},
    "generation": {"WRAPS": "global-race"},
    "counted_ctas": {"GPU_SCOPE": "scope"},
    "fence_of_a_gpu": {"ACROSS": "scope"},
    "multimem_reduce": {"NO_START": "global-race", "NO_END": "global-race", "GPU_SCOPE": "scope"},
    "multimem_store": {"SAME_SLOT": "global-race", "RELAXED": "global-race", "NO_WAIT": "global-race", "GPU_SCOPE": "scope"},
}
# Faults that a run may not show: a rank sees a later signal than it waits for, and that orders all. What the results of all ranks are then.
HIDDEN: dict[tuple[str, str], Callable[[list[Results], list[Results]], bool]] = {
    ("one_shot", "NO_END"): _differ,
    ("double_buffer", "ONE_BUFFER"): _differ,
    ("multimem_reduce", "NO_END"): _differ,
    ("signals_reset", "NOT_RESET"): lambda found, _: _seen(found) == {2},
    ("generation", "WRAPS"): lambda found, _: _seen(found) == {0},
}
DEADLOCKS = [("generation", "WRAPS")]  # in other runs
MULTIMEM = ("multimem_reduce", "multimem_store")


@functools.cache
def kernel(name: str, fault: str, ranks: int) -> consan.Kernel:
    """The kernel of a file, with a fault or without."""
    defines: dict[str, Any] = {"RANKS": ranks, **({"SCOPE": '"gpu"'} if fault == "GPU_SCOPE" else {fault: 1} if fault else {})}
    return consan.Kernel(FOLDER / f"{name}.cu", "kernel", defines=defines, include_dirs=[str(FOLDER)])


def launch(name: str, fault: str = "", ranks: int = 2, **how: Any) -> tuple[Report, list[Results]]:
    """The report, and the results of the ranks."""
    data = [np.zeros(VALUES, np.float32) for _ in range(ranks)]
    first = 0xFFFFFFFE if name == "generation" else 0
    signals = [np.full(SLOTS, first, np.uint32) for _ in range(ranks)]
    out = [np.zeros(VALUES, np.float32) for _ in range(ranks)]
    args = [[*data, *signals, out[rank], rank] for rank in range(ranks)]
    if name in MULTIMEM:
        many = consan.Multicast(data), consan.Multicast(signals)
        args = [[data[rank], many[0], signals[rank], many[1], out[rank], rank] for rank in range(ranks)]
    grid = 2 if name in ("counted_ctas", "fence_of_a_gpu") else 1
    return consan.launch(kernel(name, fault, ranks), grid, THREADS, args, ranks=ranks, device="cpu", **how), out
