"""Annotations of `consan.h`: what a report lists of them, and which instructions `consan_ignore_begin` and `_end` leave out.

A region is what stands between a begin and its end in the text of one function. A begin without an end leaves nothing out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction, Module
from consan.instrument.rewriting.context import place_of

FAMILY = "annotation"
HEADER = "consan.h"
_OPPOSITE = {"begin": "end", "end": "begin"}


def orders(function: Function) -> bool:
    """Whether a function has an annotation that releases or acquires."""
    return any(row_of(instruction).orders_by_name for instruction in function.instructions())


def ignored(function: Function) -> frozenset[int]:
    """The instructions that regions leave out, by their start."""
    inside = (each for begin, end in _regions(function) if begin and end for each in _between(function, begin, end))
    return frozenset(each.start for each in inside)


def _between(function: Function, begin: Instruction, end: Instruction) -> Iterator[Instruction]:
    return (each for each in function.instructions() if begin.start < each.start < end.start)


def _regions(function: Function) -> Iterator[tuple[Instruction | None, Instruction | None]]:
    """Each begin and its end; None for one that lacks. Regions do not nest."""
    begin = None
    for instruction in function.instructions():
        if row_of(instruction).begins_region:
            if begin is not None:
                yield begin, None
            begin = instruction
        elif row_of(instruction).ends_region:
            yield begin, instruction
            begin = None
    if begin is not None:
        yield begin, None


def described(module: Module, function: Function) -> tuple[str, ...]:
    """The entries of a report: `release at k.cu:12`, `ignored: k.cu:12 to k.cu:15`, and regions without a begin or an end."""
    found = [each for each in function.instructions() if row_of(each).is_annotation]
    if not found:
        return ()
    orders = [f"{row_of(each).action} at {_where(module, each)}" for each in found if row_of(each).orders_by_name]
    regions = [_region(module, begin, end) for begin, end in _regions(function)]
    return tuple(dict.fromkeys((*orders, *regions)))


def _region(module: Module, begin: Instruction | None, end: Instruction | None) -> str:
    if begin is not None and end is not None:
        return f"accesses from {_where(module, begin)} to {_where(module, end)} are not compared"
    one, other = ("begin", begin) if begin is not None else ("end", end)
    assert other is not None
    return f"consan_ignore_{one} at {_where(module, other)} has no consan_ignore_{_OPPOSITE[one]} in its function: it leaves nothing out"


def _where(module: Module, instruction: Instruction) -> str:
    """`k.cu:12`: the user's line, not that of the header; else `PTX line 80`."""
    place = place_of(module, instruction)
    frames = ((place.file, place.line), *((frame.file, frame.line) for frame in place.inlined))
    file, line = next((each for each in frames if each[0] and os.path.basename(each[0]) != HEADER), (None, None))
    return f"{file}:{line}" if line else f"PTX line {instruction.line}"
