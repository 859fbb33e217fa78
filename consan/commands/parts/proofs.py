"""The answer of `consan prove`, as text and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from consan.dataclass import dataclass

SCHEMA: Final = "consan.proof/1"
_ANSWERS: Final = {
    "proven": "proven: no two threads of a launch race in shared or global memory",
    "counterexample": "counterexample: a launch has a race",
    "unknown": "unknown: not proven",
}
ARRAYS: Final = (
    "arrays that different pointers among the parameters point to do not overlap; no access leaves its array or is misaligned",
    "pointers among the parameters point to global memory, not to variables of the file",
)
CALLED: Final = "calls through pointers reach functions of the file"
NOT_COVERED: Final = (
    "not part of it: accesses that the compiler has removed, memory that no thread has written, deadlocks, misused barriers, order that"
    " strong accesses lack, lanes that miss a warp-wide instruction, other launches"
)


@dataclass(frozen=True)
class ProofPlace:
    """A line of the PTX, and its line in the source; 0: not known."""

    file: str
    line: int
    ptx_line: int

    def __str__(self) -> str:
        """`k.cu:12`, or `line 40 of the PTX`."""
        return (
            f"{os.path.relpath(self.file) if os.path.isabs(self.file) else self.file}:{self.line}"
            if self.line
            else f"PTX line {self.ptx_line}"
        )

    def as_json(self) -> dict[str, Any]:
        """The parts by name."""
        return {"file": self.file, "line": self.line, "ptx_line": self.ptx_line}


@dataclass(frozen=True)
class ProofReport:
    """The answer for one kernel. `flat`: axes of the grid that have one CTA. `calls`: it calls through pointers.

    `command`: the run of a counterexample.
    """

    kernel: str
    block: tuple[int, int, int]
    answer: str
    flat: tuple[str, ...]
    overflows: tuple[ProofPlace, ...]
    assumptions: tuple[str, ...]
    calls: bool
    reasons: tuple[tuple[str, tuple[ProofPlace, ...]], ...]
    pairs: int
    seconds: float
    command: str
    places: tuple[ProofPlace, ...]

    def assumed(self) -> list[str]:
        """All that is assumed, in words."""
        flat = [f"gridDim.{axis}" for axis in self.flat]
        found = [f"{' = '.join([*flat, '1'])}: the kernel does not read the number of a CTA there"] if flat else []
        if self.overflows:
            found.append(f"integers do not overflow at {_listed(self.overflows)}")
        if self.calls:
            found.append(CALLED)
        return [*ARRAYS, *found, *self.assumptions]


def _listed(places: tuple[ProofPlace, ...]) -> str:
    return ", ".join(dict.fromkeys(map(str, places)))


def as_text(report: ProofReport) -> Iterator[str]:
    """The lines for a reader."""
    shape = " x ".join(map(str, report.block))
    yield f"{report.kernel}, blocks of {shape}: {_ANSWERS[report.answer]}"
    yield f"  {report.pairs:,} pairs of accesses compared in {report.seconds:.1f} s"
    if report.answer == "counterexample":
        yield f"  {_listed(report.places)}"
        yield f"  {report.command}"
    for why, places in report.reasons[:_MOST_REASONS]:
        yield f"  {_listed(places)}: {why}" if places else f"  {why}"
    if len(report.reasons) > _MOST_REASONS:
        yield f"  and {len(report.reasons) - _MOST_REASONS} more"
    if report.answer == "proven":
        yield "assuming"
        yield from (f"  {each}" for each in report.assumed())
        yield NOT_COVERED


_MOST_REASONS: Final = 8


def as_json(report: ProofReport) -> str:
    """The answer as `consan.proof/1`."""
    found = {"command": report.command, "places": [each.as_json() for each in report.places]}
    page: dict[str, Any] = {
        "schema": SCHEMA,
        "kernel": report.kernel,
        "block": list(report.block),
        "answer": report.answer,
        "assumptions": report.assumed(),
        "overflows": [each.as_json() for each in report.overflows],
        "reasons": [{"why": why, "places": [each.as_json() for each in places]} for why, places in report.reasons],
        "counterexample": found if report.answer == "counterexample" else None,
        "pairs": report.pairs,
        "seconds": round(report.seconds, 3),
    }
    return json.dumps(page, indent=1) + "\n"
