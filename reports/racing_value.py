"""The use of the value that a race is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from consan.dataclass import dataclass


@dataclass(frozen=True)
class UsedAt:
    """A step on the way of a value: the source line, if it is known, and that of the PTX."""

    file: str
    line: int
    ptx_line: int


@dataclass(frozen=True)
class RacingValue:
    """The use of the value that a race is about, by the text. `end`: what follows from it first and matters: "store" (to memory
    that outlives the kernel), "branch", "address" or "copy"; empty: nothing does, the value is discarded. `path`: the lines up to there.
    `addresses`: the PTX lines of accesses whose addresses follow from it.
    """

    end: str
    path: tuple[UsedAt, ...] = ()
    addresses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """Runs of the kernel on the virtual machine in which the accesses of a race come in both orders. `output`: an element that differs,
    such as `y[37]`, with its `values`; empty: none was found. `schedules`: runs.
    """

    output: str = ""
    values: tuple[str, ...] = ()
    schedules: int = 0


def united_value(values: Iterable[RacingValue | None]) -> RacingValue | None:
    """The use of several values: the shortest way of one that is used; that all are discarded; else nothing."""
    known = list(values)
    used = [each for each in known if each is not None and each.end]
    if used:
        addresses = tuple(sorted({line for each in used for line in each.addresses}))
        return replace(min(used, key=lambda each: len(each.path)), addresses=addresses)
    return None if None in known or not known else known[0]
