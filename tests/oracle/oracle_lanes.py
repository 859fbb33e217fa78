"""R-BAR1 by the way of each lane: which warp-synchronous instructions some lanes of a warp do not reach, from a plain run.

Each lane has a list of the points that it has come to, and the blocks that it ran. The lists of a warp are worked off together: a point
is done where each of its members is at it, or has ended. What is left is stuck. A point is divergent where

  - of two lanes that are stuck each is a member of the point that the other one is at, and the two points differ;
  - a member has run a block that every path from the point leads to, and that leads not back to it, without having come to the point;
  - it allows no ended lanes (mma and its kin), and a member has ended.

A lane that has ended on another path has left early: nobody waits for it (ISA "bar", "exit").

Not handled: points in device functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from consan.backends.cpu.decode.program import FunctionCode

WARP = 32
ALL = 0xFFFFFFFF
_MASKED = frozenset(("shfl", "vote", "match", "redux", "elect"))
_WHOLE = frozenset(("mma", "ldmatrix", "stmatrix", "movmatrix", "wmma"))
_WORK = _MASKED | _WHOLE | {"st", "red", "atom", "bar", "barrier", "cp", "mbarrier", "wgmma", "call"}


@dataclass(frozen=True)
class Came:
    """A lane came to a point: its line, what makes two points one, and its members."""

    line: int
    key: object
    members: int
    whole: bool


def came_to(instruction: Any, mask: int) -> Came | None:
    """The point that an instruction is, with the member mask that a lane gives it."""
    parts, line = instruction.parts, instruction.line
    if parts[:2] == ("bar", "warp") or (parts[0] in _MASKED and "sync" in parts):
        return Came(line, (instruction.opcode, mask), mask, False)
    if parts[0] == "bar" or "aligned" in parts:
        return Came(line, line, ALL, parts[0] in _WHOLE)
    return None


def is_point(instruction: Any) -> bool:
    """Whether lanes of a warp must come to an instruction together."""
    return came_to(instruction, ALL) is not None


def mask_operand(instruction: Any) -> Any:
    """The operand with the member mask of a `.sync` instruction; None for one of the whole warp."""
    masked = instruction.parts[:2] == ("bar", "warp") or (instruction.parts[0] in _MASKED and "sync" in instruction.parts)
    return instruction.operands[-1] if masked and instruction.operands else None


@dataclass
class Ways:
    """What the lanes of a wave have done."""

    points: dict[int, list[Came]] = field(default_factory=dict)  # by lane
    ran: dict[int, set[int]] = field(default_factory=dict)  # blocks, by lane
    masks: dict[tuple[int, int], int] = field(default_factory=dict)  # that lanes gave to an instruction, by lane and line
    ended: set[int] = field(default_factory=set)
    code: FunctionCode | None = None


class Paths:
    """The blocks of a kernel: what all paths from each lead to, and what any does."""

    def __init__(self, code: FunctionCode) -> None:
        self.code = code
        self.following = [tuple(self._following(block)) for block in code.blocks]
        self.reached = [self._reach(block.index) for block in code.blocks]
        self.certain = self._certain()
        self.of_line = {i.line: block.index for block in code.blocks for i in code.instructions[block.start : block.end]}

    def _following(self, block: Any) -> Iterator[int]:
        last = self.code.instructions[block.end - 1]
        name = last.parts[0]
        if name == "bra" and (target := self.code.block_at(last.scope, last.operands[0].text)) is not None:
            yield target
        falls = name not in ("bra", "ret", "exit", "trap") or last.predicate is not None
        if falls and block.index + 1 < len(self.code.blocks):
            yield block.index + 1

    def _reach(self, start: int) -> set[int]:
        found, pending = set[int](), [start]
        while pending:
            for after in self.following[pending.pop()]:
                if after not in found:
                    found.add(after)
                    pending.append(after)
        return found

    def _certain(self) -> list[set[int]]:
        """For each block those that every path from it to an end takes."""
        everything = set(range(len(self.following)))
        found = [set(everything) for _ in self.following]
        changed = True
        while changed:
            changed = False
            for block in reversed(range(len(found))):
                after = [found[n] for n in self.following[block]]
                common = (set.intersection(*after) if after and not self._may_end(block) else set()) | {block}
                if common != found[block]:
                    found[block], changed = common, True
        return found

    def _may_end(self, block: int) -> bool:
        found = self.code.blocks[block]
        return self.code.instructions[found.end - 1].parts[0] in ("ret", "exit") or not self.following[block]

    def past(self, line: int) -> set[int]:
        """The blocks that a lane comes to only after the point at a line, or without it."""
        block = self.of_line[line]
        found = {n for n in self.certain[block] if n != block and block not in self.reached[n] and self._held(n, block)}
        point = next(i for i in self.code.instructions if i.line == line and is_point(i))
        return found | ({block} if point.predicate is not None and block not in self.reached[block] else set())

    def _held(self, block: int, point: int) -> bool:
        """A lane that does nothing any more has left early, unless those that came to the point do nothing else either."""
        return any(self._works(n) for n in {block, *self.reached[block]}) or not any(self._works(n) for n in self.reached[point])

    def _works(self, block: int) -> bool:
        found = self.code.blocks[block]
        return any(i.parts[0] in _WORK for i in self.code.instructions[found.start : found.end])


class Warp:
    """The lanes of a warp, whose lists are worked off together."""

    def __init__(self, ways: Ways, paths: Paths, lanes: range) -> None:
        self.ways, self.paths, self.first = ways, paths, lanes.start
        self.lists = {lane: list(ways.points.get(lane, ())) for lane in lanes}
        self.found: set[frozenset[int]] = set()

    def divergent(self) -> set[frozenset[int]]:
        """The lines of divergent points, those of two that exclude each other together."""
        while any(self._work_off(lane) for lane in self.lists):
            pass
        for lane, left in self.lists.items():
            if left:
                self._look_at(lane, left[0])
        return self.found

    def _team(self, point: Came) -> list[int]:
        return [lane for lane in self.lists if point.members >> (lane - self.first) & 1]

    def _is_at(self, lane: int, point: Came) -> bool:
        return bool(self.lists[lane]) and self.lists[lane][0].key == point.key

    def _work_off(self, lane: int) -> bool:
        if not self.lists[lane]:
            return False
        point = self.lists[lane][0]
        team = self._team(point)
        ended = [other for other in team if not self.lists[other] and other in self.ways.ended]
        if not all(self._is_at(other, point) or other in ended for other in team):
            return False
        if any(point.whole or self._is_past(other, lane) for other in ended):
            self.found.add(frozenset((point.line,)))
        for other in {lane, *team} - set(ended):
            self.lists[other].pop(0)
        return True

    def _is_past(self, other: int, lane: int) -> bool:
        """Whether a member is behind the point that a lane is at, and has come to it less often."""
        line, left = self.lists[lane][0].line, len(self.lists[lane])
        all_of = {each: [came.line for came in self.ways.points.get(each, ())] for each in (other, lane)}
        often = all_of[lane][: len(all_of[lane]) - left + 1].count(line)
        return all_of[other].count(line) < often and not self.paths.past(line).isdisjoint(self.ways.ran.get(other, ()))

    def _look_at(self, lane: int, point: Came) -> None:
        for other in self._team(point):
            if self._is_at(other, point):
                continue
            elsewhere = self.lists[other][0] if self.lists[other] else None
            if elsewhere is not None and lane in self._team(elsewhere):
                self.found.add(frozenset((point.line, elsewhere.line)))
            elif self._is_past(other, lane):
                self.found.add(frozenset((point.line,)))


def divergent_points(ways: Ways, lanes_of_cta: range) -> set[frozenset[int]]:
    """The divergent points of a CTA."""
    if ways.code is None or not any(lane in ways.points for lane in lanes_of_cta):
        return set()
    paths = Paths(ways.code)
    found = set[frozenset[int]]()
    for first in range(lanes_of_cta.start, lanes_of_cta.stop, WARP):
        found |= Warp(ways, paths, range(first, min(first + WARP, lanes_of_cta.stop))).divergent()
    return found


def lines_of(ways: Ways, lanes_of_cta: range) -> set[int]:
    """The lines of all blocks that a CTA has run."""
    assert ways.code is not None
    ran = {ways.code.blocks[n] for lane in lanes_of_cta for n in ways.ran.get(lane, ())}
    return {i.line for block in ran for i in ways.code.instructions[block.start : block.end]}
