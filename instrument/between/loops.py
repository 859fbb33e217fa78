"""The source line of a loop: that of the branch that goes back to its top.

Compilers of CUDA C++ give that branch the line of the `for`, `while` or `do` statement. An unrolled loop has no such branch.
"""

from __future__ import annotations

from collections.abc import Collection

from consan.instrument.control_flow import graph_of
from consan.instrument.ptx import Function, Module
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import Place


def loop_around(module: Module, function: Function, lines: Collection[int]) -> Place | None:
    """The innermost loop around the instructions of some PTX lines that is on another source line; None if there is none.

    A loop on the line of such an instruction is part of the statement, such as a wait that polls.
    """
    nodes = graph_of(function).nodes
    places = [[place_of(module, step.instruction) for step in node.steps] for node in nodes]
    inside = [(number, place) for number, steps in enumerate(places) for place in steps if place.ptx_line in lines]
    own, homes = {_outermost(place) for _, place in inside}, [number for number, _ in inside]
    found = [
        (end - target, places[end][-1])
        for end, node in enumerate(nodes)
        for target in node.taken
        if homes and target <= min(homes) and max(homes) <= end and places[end] and _outermost(places[end][-1]) not in own
    ]
    return min(found, key=lambda each: each[0])[1] if found else None


def _outermost(place: Place) -> tuple[str, int]:
    """The line in the kernel."""
    frame = place.inlined[-1] if place.inlined else place
    return frame.file or "", frame.line or 0
