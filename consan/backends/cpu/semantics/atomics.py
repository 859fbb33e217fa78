"""Read-modify-write of memory by many lanes at once (PTX ISA, "atom", "red").

Lanes on different addresses take one gather, one operation and one scatter. Lanes on the same address are
serialised: the result is that of some order of the lanes (lane order, or a seeded permutation). Sums, bit
operations, minima and exchanges have closed forms along a sorted run of equal addresses. Compare-and-swap takes one pass
per success. Everything else takes one pass for each further lane on the same address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Function = Callable[..., Any]

ACCUMULATED: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum}


def all_different(index: Array) -> bool:
    """Whether no two lanes hit the same item. Coalesced accesses need no sort."""
    if len(index) < 2:
        return True
    if np.count_nonzero(index[1:] > index[:-1]) == len(index) - 1:
        return True
    ordered = np.sort(index)
    return not np.count_nonzero(ordered[1:] == ordered[:-1])


def read_modify_write(view: Array, index: Array, name: str, function: Function, values: Array, extra: Array | None) -> Array:
    """Apply the operation to `view[index]` for every lane, serialised on collisions. Returns the old value of each lane.

    `function(old, values, extra)` gives the new value. For cas, `values` is compared and `extra` is the new value.
    """
    if all_different(index):
        old = view[index]
        view[index] = function(old, values, extra)
        return old
    return _serialise(view, index, name, function, values, extra)


def _serialise(view: Array, index: Array, name: str, function: Function, values: Array, extra: Array | None) -> Array:
    order = np.argsort(index, kind="stable")
    where = index[order]
    first = np.concatenate(([True], where[1:] != where[:-1])).nonzero()[0]
    runs = _Runs(where[first], first, len(where))
    operand = values[order] if values.ndim else np.broadcast_to(values, len(where))
    if name == "cas":
        assert extra is not None
        old, last = _swap(view, runs, operand, extra[order] if extra.ndim else np.broadcast_to(extra, len(where)))
    elif name == "exch":
        old, last = _exchange(view, runs, operand)
    elif name == "add" and view.dtype.kind in "iu":
        old, last = _sum(view, runs, operand)
    elif name in ACCUMULATED and len(first) <= 64 and view.dtype.kind in "iu":
        old, last = _accumulate(view, runs, ACCUMULATED[name], operand)
    else:
        old, last = _rounds(view, runs, function, operand)
    view[runs.where] = last
    result = np.empty_like(old)
    result[order] = old
    return result


class _Runs:
    """Runs of equal addresses in sorted order."""

    def __init__(self, where: Array, first: Array, total: int) -> None:
        self.where = where
        self.first = first
        self.length = np.diff(np.append(first, total))
        self.total = total
        self.run_of = np.repeat(np.arange(len(first)), self.length)


def _exchange(view: Array, runs: _Runs, operand: Array) -> tuple[Array, Array]:
    old = np.empty(runs.total, view.dtype)
    old[1:] = operand[:-1]
    old[runs.first] = view[runs.where]
    return old, operand[runs.first + runs.length - 1]


def _sum(view: Array, runs: _Runs, operand: Array) -> tuple[Array, Array]:
    """Prefix sums modulo 2**n, so that subtracting the sum before the run is exact."""
    total = np.cumsum(operand, dtype=view.dtype)
    before = total - operand
    start = view[runs.where] - before[runs.first]
    old = before + start[runs.run_of]
    last = runs.first + runs.length - 1
    return old, old[last] + operand[last]


def _accumulate(view: Array, runs: _Runs, ufunc: np.ufunc, operand: Array) -> tuple[Array, Array]:
    old = np.empty(runs.total, view.dtype)
    last = np.empty(len(runs.first), view.dtype)
    for run, (start, length, at) in enumerate(zip(runs.first.tolist(), runs.length.tolist(), runs.where.tolist(), strict=True)):
        chain = ufunc.accumulate(np.concatenate((view[at : at + 1], operand[start : start + length])))
        old[start : start + length] = chain[:-1]
        last[run] = chain[-1]
    return old, last


def _rounds(view: Array, runs: _Runs, function: Function, operand: Array) -> tuple[Array, Array]:
    """The n-th lane of every run in the n-th pass."""
    old = np.empty(runs.total, view.dtype)
    current = view[runs.where]
    for step in range(int(runs.length.max())):
        here = (runs.length > step).nonzero()[0]
        at = runs.first[here] + step
        old[at] = current[here]
        current[here] = function(current[here], operand[at], None)
    return old, current


def _swap(view: Array, runs: _Runs, compare: Array, new: Array) -> tuple[Array, Array]:
    """In each pass, every run jumps to its next lane that changes the value. The lanes before it fail or change nothing."""
    current = view[runs.where]
    old = current[runs.run_of]
    position = np.arange(runs.total)
    changes = compare != new
    while True:
        hits = ((compare == old) & changes).nonzero()[0]
        if not len(hits):
            return old, current
        touched, index = np.unique(runs.run_of[hits], return_index=True)
        winner = hits[index]
        current[touched] = new[winner]
        boundary = np.full(len(runs.first), runs.total)
        boundary[touched] = winner
        later = position > boundary[runs.run_of]
        old[later] = current[runs.run_of[later]]
        changes[winner] = False
