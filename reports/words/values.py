"""The use of a racing value, in words."""

from __future__ import annotations

import os
from typing import Final

from consan.reports.counts import plural
from consan.reports.model import Finding
from consan.reports.racing_value import Outcomes, RacingValue, UsedAt

_BOTH: Final = 2  # the first schedules have the accesses in one order, and in the other
_RACES: Final = ("data-race", "global-race")
_ENDS: Final = {
    "store": "reaches the output: {path}, a store",
    "copy": "reaches the output: {path}, a copy",
    "branch": "decides a branch: {path}",
    "address": "becomes part of an address: {path}",
}


def value_sentence(value: RacingValue) -> str:
    """`reaches the output: k.cu:6 -> k.cu:9, a store`."""
    if not value.end:
        return "the value is discarded: no store to memory that outlives the kernel, no branch and no address follows from it"
    return _ENDS[value.end].format(path=" -> ".join(map(_place, value.path)))


def outcomes_sentence(outcomes: Outcomes) -> str:
    """`y[37] = 4.0 or 2.0`."""
    if not outcomes.output:
        return f"no difference in the buffers of {outcomes.schedules} schedules"
    why = "by the order of (1) and (2)" if outcomes.schedules == _BOTH else "in two schedules"
    return f"{outcomes.output} = {' or '.join(outcomes.values)}, {why}"


def torn_sentence(finding: Finding) -> str:
    """How parts of both orders may come together in a race of a load or a store; empty if they cannot, or nobody uses the value.

    Elements of a vector are accessed one by one, in no order (ISA "Vector Data-types" of the memory model). The smaller access lies in the
    larger one, since addresses are aligned.
    """
    sizes = [found for each in finding.pair if (found := _elements(each.op)) is not None]
    if finding.kind not in _RACES or (finding.value is not None and not finding.value.end) or len(sizes) != _BOTH:
        return ""
    element = min(each for each, _ in sizes)
    parts = min(each * count for each, count in sizes) // element
    return f"may be torn: {parts} parts of {plural(element, 'byte')} come one by one, some before and some behind" if parts > 1 else ""


def _elements(op: str) -> tuple[int, int] | None:
    """Bytes of an element of a load or a store, and how many there are; None for other operations."""
    parts = op.split(".")
    bits = parts[-1].lstrip("busf")
    if parts[0] not in ("ld", "st") or not bits.isdecimal():
        return None
    return int(bits) // 8, next((int(each[1:]) for each in parts if each[0] == "v" and each[1:].isdecimal()), 1)


def _place(at: UsedAt) -> str:
    return f"{os.path.basename(at.file)}:{at.line}" if at.line else f"PTX line {at.ptx_line}"
