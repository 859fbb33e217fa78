"""What becomes of a racing value, in words."""

from __future__ import annotations

import os
from typing import Final

from consan.reports.racing_value import RacingValue, UsedAt

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


def _place(at: UsedAt) -> str:
    return f"{os.path.basename(at.file)}:{at.line}" if at.line else f"PTX line {at.ptx_line}"
