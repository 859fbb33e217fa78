"""Repairs that only lines of the CUDA source can be: a line that a fix says to move, and waits at mbarriers as the kernel spells its own.

A wait's parity may be an expression of a loop's counter, which no operand of an instruction tells. So the other waits of the source give
the expressions, or their complements. Candidates only: runs of the kernel that is compiled from them decide.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterator
from typing import Final

from consan.dataclass import dataclass
from consan.reports.model import FixStep
from consan.reports.source.calls import CalledText, calls_of
from consan.reports.source.source_patches import SOURCE_CALL, block_of, parted

MOST_WAITS: Final = 12
_MOST_LATE: Final = 4  # waits that move, and conditions
_AT: Final = r"[\w.+-]+:(\d+)"
_WHAT: Final = r"the [\w.:()]+(?: \d+(?:, \d+)?)? at "
_MOVE: Final = re.compile(rf"\bmove {_WHAT}{_AT} (before|after) (?:{_WHAT})?{_AT}")
_RELEASE: Final = re.compile(rf"\blet the \w+ at {_AT} come before the release at {_AT}")
_SYNCED: Final = "with __syncwarp() between the two"
_IF: Final = re.compile(r"\s*if\s*\(")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_COMPLEMENT: Final = re.compile(r"\((.+)\) \^ 1")


def moves(source: str, fix: str, file: str) -> Iterator[tuple[FixStep, ...]]:
    """The lines that the words of a fix move: the line itself, or a release behind what it is to publish, and where the lanes meet then;
    with a barrier of the warp between, if the words name one.
    """
    named = [(int(own), where, int(line)) for own, where, line in _MOVE.findall(fix)]
    released = [(int(own), "after", int(line)) for line, own in _RELEASE.findall(fix)]
    text = source.splitlines()
    met = [(own, where, line + 1) for own, where, line in released if line < len(text) and next(calls_of(text[line], "sync"), None)]
    ahead = [
        (int(line), "before", int(own) - 1) for line, own in _RELEASE.findall(fix) if next(calls_of(text[int(own) - 2], "fence"), None)
    ]
    for own, where, line in named + ahead + released + met:
        step = FixStep("move", f"line {own}", where, "", file, line, 0, "", own)
        yield (step,)
        if where == "after" and _SYNCED in fix:
            yield FixStep("add", "bar.warp.sync 0xffffffff", "after", "", file, line, 0, "__syncwarp()"), step


def branches(source: str, own: list[int], file: str) -> Iterator[FixStep]:
    """A barrier of all threads between two branches of one condition."""
    line, condition = parted(source, own[0], own[-1]) if len(own) > 1 else (0, "")
    if line:
        yield FixStep("alter", f"__syncthreads() and if (!({condition})) in place of else", "at", "", file, line, 0, "", line)


def later_waits(source: str, line: int, file: str, active: Container[int]) -> Iterator[FixStep]:
    """Lines with a wait that stand below a line of their block, before it. `active`: the lines that the kernel has instructions of."""
    own = block_of(source, line)
    later = (number for number in _waiting(source, active) if number > line and block_of(source, number) == own)
    yield from (
        FixStep("move", f"line {number}", "before", "", file, line, 0, "", number) for number in itertools.islice(later, _MOST_LATE)
    )


def waits_of_some(source: str, own: list[int], file: str, active: Container[int]) -> Iterator[FixStep]:
    """Without the condition of a wait between two lines: each round waits."""
    text = source.splitlines()
    between = (number for number in _waiting(source, active) if own[0] < number < own[-1] and _IF.match(text[number - 1]))
    yield from (FixStep("leave-out", "condition", "at", "", file, number, 0, "", number) for number in itertools.islice(between, 1))


def _waiting(source: str, active: Container[int]) -> list[int]:
    """The lines that have a call of a wait."""
    return [number for number, each in enumerate(source.splitlines(), 1) if number in active and next(calls_of(each, "wait"), None)]


@dataclass(frozen=True)
class _SpelledWait:
    line: int
    call: CalledText
    name: str  # of the mbarrier


def waits(source: str, lines: list[int], file: str, active: Container[int]) -> Iterator[FixStep]:
    """Waits for mbarriers at which threads arrive and nobody waits, before some lines; then other parities at the waits that there are.

    `active`: the lines that the kernel has instructions of.
    """
    text = [line if number in active else "" for number, line in enumerate(source.splitlines(), 1)]
    calls = ((number, *each) for number, line in enumerate(text, 1) for each in _named(line, "wait"))
    found = [_SpelledWait(number, call, name) for number, call, name in calls if len(call.arguments) > 1]
    awaited = {wait.name for wait in found}
    signalled = dict.fromkeys(name for line in text for _, name in _named(line, "arrive|release") if name not in awaited)
    parities = dict.fromkeys(each for wait in found for each in _both(wait.call.arguments[-1]))
    added = (
        FixStep("add", SOURCE_CALL, "before", "", file, line, 0, wait.call.text(_renamed(wait, name), parity))
        for name, wait, line in itertools.product(signalled, found, lines)
        for parity in _both(wait.call.arguments[-1])
    )
    altered = (
        FixStep("alter", SOURCE_CALL, "at", "", file, wait.line, 0, wait.call.text(wait.call.arguments[0], parity), wait.line)
        for wait, parity in itertools.product(found, parities)
        if parity != wait.call.arguments[-1]
    )
    yield from itertools.islice(dict.fromkeys(itertools.chain(added, altered)), MOST_WAITS)


def _named(line: str, kind: str) -> Iterator[tuple[CalledText, str]]:
    """The calls of a line whose name says what they do, with the first name in their first argument."""
    for call in calls_of(line, kind):
        if name := _NAME.search(call.arguments[0]):
            yield call, name[0]


def _renamed(wait: _SpelledWait, name: str) -> str:
    """The first argument of a wait, of another mbarrier."""
    return re.sub(rf"\b{wait.name}\b", name, wait.call.arguments[0])


def _both(parity: str) -> tuple[str, str]:
    """The other parity, and the same."""
    if parity in ("0", "1"):
        return str(1 - int(parity)), parity
    other = _COMPLEMENT.fullmatch(parity)
    return (other[1] if other else f"({parity}) ^ 1"), parity
