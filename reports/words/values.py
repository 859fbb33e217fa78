"""What becomes of a racing value, in words."""

from __future__ import annotations

import os
from typing import Final

from consan.reports.racing_value import Outcomes, RacingValue, UsedAt

_BOTH: Final = 2  # the first schedules have the accesses in one order, and in the other
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


def _place(at: UsedAt) -> str:
    return f"{os.path.basename(at.file)}:{at.line}" if at.line else f"PTX line {at.ptx_line}"
