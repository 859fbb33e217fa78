"""Random kernels whose addresses follow from thread numbers, CTA numbers and a parameter, as PTX and as events of all threads.

Some copy from global to shared memory asynchronously. A copy takes place at any time from its issue to the wait that covers it.

The events are computed from the program, not from its PTX, by enumeration: nothing of consan is used.
"""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, product
from unittest import mock

from consan.instrument.ptx import parse
from consan.prove import proof
from consan.prove.launched import relations

_MASK = (1 << 32) - 1
LEAVES = ("tid", "ctaid", "n", "tid", "tid")
BINARY = ("add", "add", "mulc", "shlc", "shrc", "andc", "xorc", "remc", "divc", "addc", "sub")
_SECONDS = 2  # for one program
_WARP = 32
_ROWS = range(1, 5)  # of CTAs
ELEMENTS = 1 << 20  # of an array; addresses are kept in it


@dataclass(frozen=True)
class Term:
    """A number: a leaf's name, or an operation on terms with a constant."""

    how: str
    parts: tuple[Term, ...] = ()
    constant: int = 0

    def value(self, given: dict[str, int]) -> int:
        """The number for a thread, of 32 bits without a sign."""
        if not self.parts:
            return given[self.how] & _MASK if self.how != "const" else self.constant
        one = self.parts[0].value(given)
        other = self.parts[1].value(given) if len(self.parts) > 1 else self.constant
        found = {
            "add": one + other, "sub": one - other, "addc": one + other, "mulc": one * other, "shlc": one << (other & 31),
            "shrc": one >> (other & 31), "andc": one & other, "xorc": one ^ other,
            "mul": one * other,
            "remc": one % max(1, other), "divc": one // max(1, other),
        }[self.how]  # fmt: skip
        return found & _MASK


@dataclass
class Statement:
    """One of: access, barrier, lanes_meet, if, loop, copy, commit, wait, fence, bulk_copy, bulk_commit, bulk_wait (`writes`: for reads)."""

    kind: str
    term: Term | None = None  # an index, or what is compared with `limit`; the count of a loop
    writes: bool = False
    shared: bool = False
    limit: Term | None = None  # of an `if`; the element that a copy reads
    turns: tuple[
        tuple[str, int, int | Term], ...
    ] = ()  # of a loop: registers, their first numbers, and the size of their round or what is next
    left: int = 0  # the groups that a wait may leave in flight; -1: it waits for all copies
    body: list[Statement] = field(default_factory=list)
    name: str = ""


@dataclass
class Event:
    """An access. `interval`: the barriers before it; `number`: the statements before it. `until`: both, where it has taken place.

    `lanes`: the barriers of the warp before it. `fences`: the proxy fences of its thread behind a write, or before a bulk copy.
    """

    array: str
    element: int
    writes: bool
    interval: int
    number: int
    copies: bool = False
    until: tuple[float, float] = (0, 0)
    lanes: int = 0
    bulk: bool = False
    fences: list[tuple[int, int]] = field(default_factory=list)


class Thread:
    """What a thread does."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._passed = self._steps = self._lanes = 0
        self._open: list[Event] = []
        self._groups: list[list[Event]] = []
        self._bulk: list[list[Event]] = [[]]
        self._fences: list[tuple[int, int]] = []

    def run(self, body: list[Statement], given: dict[str, int]) -> None:
        """Go through some statements."""
        for each in body:
            self._steps += 1
            if each.kind == "if":
                if each.term.value(given) < each.limit.value(given):
                    self.run(each.body, given)
            elif each.kind == "loop":
                turning = {name: first for name, first, _ in each.turns}
                for number in range(each.term.value(given)):
                    self.run(each.body, given | {each.name: number} | turning)
                    here = given | {each.name: number} | turning
                    turning = {name: _turned(turning[name], size, here) for name, _, size in each.turns}
            else:
                getattr(self, f"_{each.kind}")(each, given)

    @property
    def in_flight(self) -> bool:
        """Whether a copy has not been waited for."""
        reads = (each for group in self._bulk for each in group if not each.writes)
        return bool(self._open or any(self._groups) or any(each.until[0] == math.inf for each in reads))

    def _barrier(self, _: Statement, __: dict[str, int]) -> None:
        self._passed += 1

    def _bulk_copy(self, each: Statement, given: dict[str, int]) -> None:
        for array, term in (("s", each.term), ("g", each.limit)):
            first = 4 * term.value(given) % ELEMENTS
            for element in range(first, first + 4):
                found = Event(array, element, array == "g", self._passed, self._steps, True, (math.inf, math.inf), self._lanes, True)
                found.fences = list(self._fences)
                self.events.append(found)
                self._bulk[-1].append(found)

    def _bulk_commit(self, _: Statement, __: dict[str, int]) -> None:
        self._bulk.append([])

    def _bulk_wait(self, each: Statement, _: dict[str, int]) -> None:
        for group in self._bulk[: max(0, len(self._bulk) - 1 - each.left)]:
            for event in group:
                if event.until[0] == math.inf and not (each.writes and event.writes):
                    event.until = self._passed, self._steps

    def _fence(self, _: Statement, __: dict[str, int]) -> None:
        self._fences.append((self._passed, self._steps))
        for each in self.events:
            if each.writes and not each.copies:
                each.fences.append((self._passed, self._steps))

    def _lanes_meet(self, _: Statement, __: dict[str, int]) -> None:
        self._lanes += 1

    def _access(self, each: Statement, given: dict[str, int]) -> None:
        self._add("s" if each.shared else "g", each.term, given, writes=each.writes)

    def _add(self, array: str, term: Term, given: dict[str, int], *, writes: bool) -> Event:
        at = term.value(given) % ELEMENTS
        self.events.append(Event(array, at, writes, self._passed, self._steps, until=(self._passed, self._steps), lanes=self._lanes))
        return self.events[-1]

    def _copy(self, each: Statement, given: dict[str, int]) -> None:
        for array, term in (("s", each.term), ("g", each.limit)):
            found = self._add(array, term, given, writes=array == "s")
            found.copies, found.until = True, (math.inf, math.inf)
            self._open.append(found)

    def _commit(self, _: Statement, __: dict[str, int]) -> None:
        self._groups.append(self._open)
        self._open = []

    def _wait(self, each: Statement, _: dict[str, int]) -> None:
        if each.left < 0:
            self._commit(each, _)
        for group in self._groups[: len(self._groups) - max(0, each.left)]:
            for event in group:
                event.until = self._passed, self._steps
            group.clear()


def _turned(before: int, size: int | Term, given: dict[str, int]) -> int:
    """The next number of a register."""
    if isinstance(size, Term):
        return size.value(given)
    return before + 1 if before + 1 < size else 0


def races(body: list[Statement], block: int, ctas: int, n: int, rows: int = 1) -> bool:
    """Whether a launch of `ctas` x `rows` CTAs has a race, or a copy that nobody waits for."""
    met = defaultdict[object, list[tuple[int, int, Event]]](list)
    for cta in range(ctas * rows):
        for tid in range(block):
            thread = Thread()
            thread.run(body, {"tid": tid, "ctaid": cta % ctas, "row": cta // ctas, "n": n})
            if thread.in_flight:
                return True
            for each in thread.events:
                met[each.array, each.element, cta if each.array == "s" else 0].append((cta, tid, each))
    return any(
        any(one[2].writes for one in found) and any(map(_race, *zip(*combinations(found, 2), strict=True)))
        for found in met.values()
        if len(found) > 1
    )


def _race(one: tuple[int, int, Event], other: tuple[int, int, Event]) -> bool:
    first, second = one[2], other[2]
    if not (first.writes or second.writes):
        return False
    if one[0] != other[0]:
        return True
    if one[1] != other[1]:
        if one[1] // _WARP == other[1] // _WARP and first.lanes != second.lanes:
            return False
        overlap = first.interval <= second.until[0] and second.interval <= first.until[0]
        return overlap or _lacks_fence(first, second, 0) or _lacks_fence(second, first, 0)
    if first.number > second.number:
        first, second = second, first
    return (first.copies and first.number < second.number <= first.until[1]) or _lacks_fence(first, second, 1)


def _lacks_fence(first: Event, second: Event, part: int) -> bool:
    """Whether a bulk copy is behind a write, and no proxy fence of either thread between; `part`: counted in barriers, or in statements."""
    begin, end = ((each.interval, each.number)[part] for each in (first, second))
    if not second.bulk or first.copies or not first.writes or begin >= end:
        return False
    writer = any(fence[part] < end for fence in first.fences)
    return not writer and not any(begin < fence[part] for fence in second.fences)


class Maker:
    """Makes a random program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0

    def program(self) -> list[Statement]:
        """A few statements; at least one writes."""
        found = self._body(3, ("tid", "ctaid", "n"), uniform=True)
        return [*found, self._access(("tid", "ctaid", "n"), writes=True)]

    def _body(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> list[Statement]:
        return [self.statement(depth, leaves, uniform=uniform) for _ in range(self._random.randint(1, 3))]

    def statement(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> Statement:
        """One statement, with those inside of it."""
        kinds = ["access"] * 5 + ["barrier"] * (3 * uniform) + (["if", "loop"] if depth else [])
        kind = self._random.choice(kinds)
        if kind == "access":
            return self._access(leaves, writes=self._random.random() < 0.6)
        if kind == "barrier":
            return Statement("barrier")
        if kind == "if":
            same = uniform and self._random.random() < 0.3
            term = Term(self._random.choice(("ctaid", "n"))) if same else self._term(leaves, 1)
            limit = self._random.choice((Term("n"), Term("const", constant=self._random.randint(0, 6))))
            return Statement("if", term, limit=limit, body=self._body(depth - 1, leaves, uniform=same))
        self._loops += 1
        name, same = f"i{self._loops}", uniform and self._random.random() < 0.7
        count = self._random.choice((Term("n"), Term("const", constant=self._random.randint(0, 3))))
        if not same:
            count = Term("andc", (self._term(leaves, 1),), 3)
        return Statement("loop", count, name=name, body=self._body(depth - 1, (*leaves, name, name), uniform=same))

    def _access(self, leaves: tuple[str, ...], *, writes: bool) -> Statement:
        return Statement("access", self._index(leaves), writes, self._random.random() < 0.6)

    def _index(self, leaves: tuple[str, ...]) -> Term:
        """An index: most are sums of scaled numbers, so that many programs are free of races."""
        if self._random.random() < 0.3:
            return self._term(leaves, 2)
        found = Term("tid")
        if self._random.random() < 0.4:
            found = Term("xorc", (found,), self._random.choice((1, 2, 3)))
        for leaf in leaves:
            if leaf != "tid" and self._random.random() < 0.6:
                found = Term("add", (found, Term("mulc", (Term(leaf),), self._random.choice((4, 4, 8, 2, 16, 1)))))
        return found

    def _term(self, leaves: tuple[str, ...], depth: int) -> Term:
        if not depth or self._random.random() < 0.2:
            return Term(self._random.choice(leaves))
        how = self._random.choice(BINARY)
        one = self._term(leaves, depth - 1)
        if how in ("add", "sub"):
            return Term(how, (one, self._term(leaves, depth - 1)))
        small = {"shlc": 3, "shrc": 3}.get(how, 9)
        return Term(how, (one,), self._random.randint(1, small))


class GridMaker(Maker):
    """Makes a random program for grids of two dimensions; `row` is the number of a CTA in the second one."""

    def program(self) -> list[Statement]:
        """As others; most places are of the row's own, and then of the CTA's."""
        leaves = ("tid", "ctaid", "row", "n")
        return [*self._body(2, leaves, uniform=True), self._access(leaves, writes=True)]

    def _index(self, leaves: tuple[str, ...]) -> Term:
        some = self._random
        if some.random() < 0.25:
            return self._term(leaves, 2)
        found = Term("xorc", (Term("tid"),), some.choice((1, 2, 3))) if some.random() < 0.4 else Term("tid")
        for leaf in leaves:
            scales = {"row": (64, 64, 32, 16, 4), "ctaid": (4, 4, 4, 8, 2)}.get(leaf, (16, 1))
            if leaf in {"row", "ctaid"} or (leaf != "tid" and some.random() < 0.3):
                found = Term("add", (found, Term("mulc", (Term(leaf),), some.choice(scales))))
        return found


class StrideMaker(Maker):
    """Makes a random program on rows that the parameter is the stride of, or the length of, or both."""

    def program(self) -> list[Statement]:
        """A few accesses of elements of rows, most of them under a condition."""
        some = self._random
        body = [self._element() for _ in range(some.randint(1, 2))]
        if some.random() < 0.7:
            limit = some.choice((Term("n"), Term("n"), Term("addc", (Term("n"),), 1), Term("const", constant=some.randint(1, 4))))
            body = [Statement("if", Term(some.choice(("tid", "tid", "ctaid"))), limit=limit, body=body)]
        return [*body, self._element()] if some.random() < 0.3 else body

    def _element(self) -> Statement:
        some = self._random
        row, column = some.choice((("ctaid", "tid"), ("ctaid", "tid"), ("tid", "ctaid")))
        place = Term("mul", (Term(row), Term("n")))
        if some.random() < 0.2:
            place = Term("mulc", (place,), some.choice((2, 3)))
        place = Term("add", (place, Term(column)))
        return Statement("access", Term("addc", (place,), some.choice((0, 0, 0, 1, 4))), some.random() < 0.8, shared=False)


class WarpMaker(Maker):
    """Makes a random program with barriers of the warp, most of them in a loop; a thread reads what lanes of its warp write, or others."""

    def program(self) -> list[Statement]:
        """Accesses in rounds, between barriers of the warp."""
        some = self._random
        body = [self.statement(0, ("tid", "i"), uniform=True) for _ in range(some.randint(3, 6))]
        whole = [Statement("loop", some.choice((Term("n"), Term("const", constant=2))), name="i", body=body)]
        return [*whole, Statement("lanes_meet"), self._access(("tid",), writes=True)] if some.random() < 0.3 else whole

    def statement(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> Statement:
        """An access, or a barrier of the warp or the CTA."""
        kind = self._random.choice(("lanes_meet", "lanes_meet", "lanes_meet", "barrier", *["access"] * 4))
        return Statement(kind) if kind != "access" else self._access(leaves, writes=self._random.random() < 0.5)

    def _index(self, leaves: tuple[str, ...]) -> Term:
        some = self._random
        lane = Term("xorc", (Term("tid"),), some.choice((1, 16, 16, 32))) if some.random() < 0.6 else Term("tid")
        if "i" not in leaves or some.random() < 0.6:
            return lane
        buffer = Term("andc", (Term("addc", (Term("i"),), some.choice((0, 0, 1))),), some.choice((1, 1, 3)))
        return Term("add", (lane, Term("mulc", (buffer,), some.choice((64, 64, 32)))))


class DelayMaker(Maker):
    """Makes a random program of a loop that computes numbers for its next round, and for the one behind it."""

    def program(self) -> list[Statement]:
        """Accesses under conditions of these numbers, or at places of them."""
        some = self._random
        leaves = ("tid", "ctaid", "n", "i")
        later = Term("addc", (Term("mulc", (Term("i"),), 4),), some.choice((0, 4, 4, 4, 8)))
        later = Term("add", (later, Term("tid"))) if some.random() < 0.7 else self._term(leaves, 1)
        turns = (("later", some.choice((0, 0, 1, 4)), Term("next")), ("next", some.choice((0, 4, 4, 8)), later))
        body = [
            self._access(some.choice((leaves, ("tid", "ctaid", "later"), ("tid", "next"))), writes=some.random() < 0.7) for _ in range(2)
        ]
        if some.random() < 0.6:
            body[0] = Statement(
                "if", Term(some.choice(("later", "next"))), limit=some.choice((Term("n"), Term("const", constant=8))), body=body[:1]
            )
        if some.random() < 0.3:
            body.append(Statement("barrier"))
        return [Statement("loop", some.choice((Term("n"), Term("const", constant=3))), name="i", body=body, turns=turns)]


class BulkMaker(Maker):
    """Makes a random program that fills shared memory and copies it to global memory in bulk, in rounds, with a fault in most cases."""

    def program(self) -> list[Statement]:
        """Writes, a fence, a barrier, the copy of one thread, its wait, a barrier; some of these are left out or change places."""
        some = self._random
        stages = some.choice((1, 1, 2))
        stage = Term("mulc", (Term("remc", (Term("i"),), stages),), 4)
        fill = Statement("access", Term("add", (stage, Term("tid"))), some.random() < 0.9, shared=True)
        quarter = Term("remc", (Term("i"),), stages)
        to = Term("add", (Term("mulc", (Term("ctaid"),), some.choice((8, 8, 8, 4))), Term("andc", (Term("i"),), some.choice((7, 7, 3, 0)))))
        issue = [Statement("bulk_copy", quarter, limit=to), Statement("bulk_commit")]
        wait = Statement("bulk_wait", writes=some.random() < 0.6, left=some.choice((0, 0, stages - 1)))
        one = Statement("if", Term("tid"), limit=Term("const", constant=1), body=[*issue, *([wait] if some.random() < 0.7 else [])])
        body = [fill, Statement("fence"), Statement("barrier"), one, *([wait] if some.random() < 0.3 else []), Statement("barrier")]
        if some.random() < 0.5:
            del body[some.randrange(len(body))]
        if some.random() < 0.2:
            first, second = some.sample(range(len(body)), 2)
            body[first], body[second] = body[second], body[first]
        if some.random() < 0.2:
            body.append(Statement("access", Term("tid"), some.random() < 0.5, shared=some.random() < 0.5))
        rounds = Statement("loop", some.choice((Term("const", constant=1), Term("const", constant=3), Term("n"))), name="i", body=body)
        return [rounds, *([Statement("bulk_wait", writes=some.random() < 0.5)] if some.random() < 0.8 else [])]


class CopyMaker(Maker):
    """Makes a random program with copies: any statements, or a pipeline with a fault in most cases."""

    def program(self) -> list[Statement]:
        """Statements. In most programs the last one waits for all copies."""
        some = self._random
        found = (
            self._pipeline()
            if some.random() < 0.5
            else self._body(2, ("tid", "ctaid", "n"), uniform=True) + [self._copied(("tid", "ctaid", "n"))]
        )
        if some.random() < 0.85:
            found.append(Statement("wait", left=-1))
        if some.random() < 0.5:
            found += [Statement("barrier"), self._access(("tid", "ctaid", "n"), writes=some.random() < 0.5)]
        return found

    def statement(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> Statement:
        """One statement, with those inside of it."""
        kind = self._random.choice(("copy", "copy", "commit", "wait", "wait", *["other"] * 5))
        if kind == "copy":
            return self._copied(leaves)
        if kind == "wait":
            return Statement("wait", left=self._random.choice((-1, 0, 0, 1)))
        return super().statement(depth, leaves, uniform=uniform) if kind == "other" else Statement("commit")

    def _copied(self, leaves: tuple[str, ...]) -> Statement:
        return Statement("copy", self._index(leaves), limit=self._term(leaves, 1))

    def _pipeline(self) -> list[Statement]:
        """Stages that are filled ahead: `stages` in memory, `ahead` of them in flight, and `left` at the wait."""
        some = self._random
        stages = some.choice((1, 2, 2, 3, 3))
        ahead = max(0, stages - 1 - (some.random() < 0.2))
        left = max(0, ahead - 1 + some.choice((0, 0, 0, 1, -1)))

        turns = (
            (("filled", ahead % stages, stages), ("used", 0, max(1, stages + some.choice((0, 0, 0, 1, -1))))) if some.random() < 0.5 else ()
        )

        def stage(term: Term, shift: int) -> Term:
            round_ = Term("remc", (Term("addc", (term,), shift),), stages)
            if turns and term.how == "i":
                round_ = Term("filled" if shift else "used")
            lane = Term("xorc", (Term("tid"),), some.choice((1, 2))) if some.random() < 0.5 else Term("tid")
            return Term("add", (Term("mulc", (round_,), some.choice((4, 4, 4, 4, 3))), lane))

        begin = [
            each for at in range(ahead) for each in (Statement("copy", stage(Term("const"), at), limit=Term("tid")), Statement("commit"))
        ]
        copy = Statement("copy", stage(Term("i"), ahead), limit=Term("add", (Term("i"), Term("tid"))))
        fill = [Statement("if", Term("i"), limit=Term("n"), body=[copy]) if some.random() < 0.3 else copy, Statement("commit")]
        use = [Statement("access", stage(Term("i"), 0), some.random() < 0.3, shared=True)]
        rounds = (
            [Statement("wait", left=left), Statement("barrier"), *(fill + use if some.random() < 0.5 else use + fill)]
            if ahead
            else [*fill, Statement("wait", left=left), Statement("barrier"), *use]
        )
        if some.random() < 0.5:
            rounds.append(Statement("barrier"))
        if some.random() < 0.3:
            del rounds[some.randrange(len(rounds))]
        return [*begin, Statement("loop", Term("n"), name="i", body=rounds, turns=turns)]


class Writer:
    """Writes a program as PTX. `bounds`: indices are taken modulo the size of the array."""

    def __init__(self, *, bounds: bool = True) -> None:
        self._bounds = bounds
        self._lines: list[str] = []
        self._count = 0
        self._registers: dict[str, str] = {}

    def text(self, body: list[Statement], block: int) -> str:
        """The module, with one kernel `k(pointer, n)`."""
        for name, source in (("tid", "%tid.x"), ("ctaid", "%ctaid.x")):
            self._registers[name] = self._new()
            self._lines.append(f"mov.u32 {self._registers[name]}, {source};")
        self._registers["n"] = self._new()
        self._lines += [f"ld.param.u32 {self._registers['n']}, [n];", "ld.param.u64 %rd1, [g];", "cvta.to.global.u64 %rd2, %rd1;"]
        self._body(body)
        head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 g, .param .u32 n)\n"
        registers = f".reg .b32 %r<{self._count + 1}>;\n.reg .pred %p<{self._count + 1}>;\n.reg .b64 %rd<{self._count + 10}>;\n"
        shared = f".shared .align 4 .b8 s[{4 * ELEMENTS}];\n"
        return f"{head}.reqntid {block}, 1, 1\n{{\n{registers}{shared}" + "\n".join([*self._lines, "ret;", "}", ""])

    def _new(self) -> str:
        self._count += 1
        return f"%r{self._count}"

    def _term(self, term: Term) -> str:
        if term.how == "row":  # here, not once: a kernel that never reads it is launched with one row
            self._lines.append(f"mov.u32 {(found := self._new())}, %ctaid.y;")
            return found
        if not term.parts:
            return self._registers[term.how] if term.how != "const" else str(term.constant)
        one = self._term(term.parts[0])
        other = self._term(term.parts[1]) if len(term.parts) > 1 else str(term.constant)
        opcode = {
            "add": "add.s32", "sub": "sub.s32", "addc": "add.s32", "mulc": "mul.lo.s32", "shlc": "shl.b32", "shrc": "shr.u32",
            "andc": "and.b32", "xorc": "xor.b32", "mul": "mul.lo.s32", "remc": "rem.u32", "divc": "div.u32",
        }[term.how]  # fmt: skip
        found = self._new()
        self._lines.append(f"{opcode} {found}, {one}, {other};")
        return found

    def _body(self, body: list[Statement]) -> None:
        for each in body:
            getattr(self, f"_{each.kind}")(each)

    def _barrier(self, _: Statement) -> None:
        self._lines.append("bar.sync 0;")

    def _bulk_copy(self, each: Statement) -> None:
        source, bounds = self._place(Term("mulc", (each.term,), 4), shared=True), self._bounds
        self._bounds = False  # elements of two CTAs would meet behind the last one
        to = self._place(Term("mulc", (each.limit,), 4), shared=False)
        self._bounds = bounds
        self._lines.append(f"cp.async.bulk.global.shared::cta.bulk_group [{to}], [{source}], 16;")

    def _bulk_commit(self, _: Statement) -> None:
        self._lines.append("cp.async.bulk.commit_group;")

    def _bulk_wait(self, each: Statement) -> None:
        self._lines.append(f"cp.async.bulk.wait_group{'.read' if each.writes else ''} {each.left};")

    def _fence(self, _: Statement) -> None:
        self._lines.append("fence.proxy.async;")

    def _lanes_meet(self, _: Statement) -> None:
        self._lines.append("bar.warp.sync -1;")

    def _place(self, term: Term, *, shared: bool) -> str:
        """A register with the address of an element."""
        index, masked, wide = self._term(term), self._new(), f"%rd{self._count + 5}"
        self._lines.append(f"and.b32 {masked}, {index}, {ELEMENTS - 1};" if self._bounds else f"mov.u32 {masked}, {index};")
        if not shared:
            self._lines += [f"mul.wide.u32 {wide}, {masked}, 4;", f"add.s64 {wide}, %rd2, {wide};"]
            return wide
        base, place = self._new(), self._new()
        self._lines += [f"mov.u32 {base}, s;", f"mad.lo.s32 {place}, {masked}, 4, {base};"]
        return place

    def _copy(self, each: Statement) -> None:
        to, source = self._place(each.term, shared=True), self._place(each.limit, shared=False)
        self._lines.append(f"cp.async.ca.shared.global [{to}], [{source}], 4;")

    def _commit(self, _: Statement) -> None:
        self._lines.append("cp.async.commit_group;")

    def _wait(self, each: Statement) -> None:
        self._lines.append("cp.async.wait_all;" if each.left < 0 else f"cp.async.wait_group {each.left};")

    def _access(self, each: Statement) -> None:
        place = self._place(each.term, shared=each.shared)
        space, value = "shared" if each.shared else "global", self._new()
        self._lines.append(f"st.{space}.u32 [{place}], 1;" if each.writes else f"ld.{space}.u32 {value}, [{place}];")

    def _if(self, each: Statement) -> None:
        one, limit, label = self._term(each.term), self._term(each.limit), self._new()
        number = label[2:]
        self._lines += [f"setp.ge.u32 %p{number}, {one}, {limit};", f"@%p{number} bra $L{number};"]
        self._body(each.body)
        self._lines.append(f"$L{number}:")

    def _loop(self, each: Statement) -> None:
        count, counter = self._term(each.term), self._new()
        number = counter[2:]
        self._registers[each.name] = counter
        for name, first, _ in each.turns:
            self._registers[name] = self._new()
            self._lines.append(f"mov.u32 {self._registers[name]}, {first};")
        self._lines += [
            f"mov.u32 {counter}, 0;",
            f"$T{number}:",
            f"setp.ge.u32 %p{number}, {counter}, {count};",
            f"@%p{number} bra $E{number};",
        ]
        self._body(each.body)
        for name, _, size in each.turns:
            if isinstance(size, Term):
                self._lines.append(f"mov.u32 {self._registers[name]}, {self._term(size)};")
                continue
            turning, predicate = self._registers[name], self._new()[2:]
            self._lines += [f"add.s32 {turning}, {turning}, 1;", f"setp.ge.s32 %p{predicate}, {turning}, {size};"]
            self._lines.append(f"selp.b32 {turning}, 0, {turning}, %p{predicate};")
        self._lines += [f"add.s32 {counter}, {counter}, 1;", f"bra $T{number};", f"$E{number}:"]


@contextmanager
def _by_the_processor() -> Iterator[None]:
    """The limits of proofs count the time of the processor: what is proven is the same on a busy machine."""
    with mock.patch("time.monotonic", time.process_time):
        yield


@_by_the_processor()
def wrong(seeds: Iterable[int], maker: type[Maker] = Maker, block: int = 4) -> tuple[list[int], int]:
    """Random programs that are proven and have a race in a small launch; and how many are proven. Launches: all grids up to 4 x 4."""
    found, proven = [], 0
    for seed in seeds:
        body = maker(seed).program()
        module = parse(Writer().text(body, block), f"{seed}.ptx")
        if proof.prove(module.functions[0], module, (block, 1, 1), (0,), [], _SECONDS).answer == "proven":
            proven += 1
            launches = product(range(1, 5), range(7), _ROWS if maker is GridMaker else (1,))
            found += [seed] if any(races(body, block, ctas, n, rows) for ctas, n, rows in launches) else []
    return found, proven


@_by_the_processor()
def wrong_as_launched(seeds: Iterable[int], block: int = 4) -> tuple[list[int], int]:
    """As `wrong`, for programs that are proven under relations of a launch with a parameter: in launches that have these relations."""
    found, proven = [], 0
    for seed in seeds:
        body = StrideMaker(seed).program()
        module, given = parse(Writer(bounds=False).text(body, block), f"{seed}.ptx"), [bytes(8), (1 + seed % 6).to_bytes(4, "little")]
        answer = relations.prove_as_launched(module.functions[0], module, (block, 1, 1), (0,), given, _SECONDS)
        if answer.answer == "proven" and answer.relations:
            proven += 1
            covered = [n for n in range(9) if all(each.holds([bytes(8), n.to_bytes(4, "little")]) for each in answer.relations)]
            found += [seed] if any(races(body, block, ctas, n) for ctas in range(1, 5) for n in covered) else []
    return found, proven
