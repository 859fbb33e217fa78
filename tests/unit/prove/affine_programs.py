"""Random kernels whose addresses follow from thread numbers, CTA numbers and a parameter, as PTX and as events of all threads.

The events are computed from the program, not from its PTX, by enumeration: nothing of consan is used.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

_MASK = (1 << 32) - 1
LEAVES = ("tid", "ctaid", "n", "tid", "tid")
BINARY = ("add", "add", "mulc", "shlc", "shrc", "andc", "xorc", "remc", "divc", "addc", "sub")
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
            "remc": one % max(1, other), "divc": one // max(1, other),
        }[self.how]  # fmt: skip
        return found & _MASK


@dataclass
class Statement:
    """One of: access, barrier, if, loop."""

    kind: str
    term: Term | None = None  # an index, or what is compared with `limit`; the count of a loop
    writes: bool = False
    shared: bool = False
    limit: Term | None = None
    body: list[Statement] = field(default_factory=list)
    name: str = ""


Event = tuple[str, int, bool, int]  # the array, the element, whether it is written, and the barriers before


def events(body: list[Statement], given: dict[str, int], passed: list[int]) -> Iterator[Event]:
    """What a thread does. `passed`: how many barriers it has passed."""
    for each in body:
        if each.kind == "barrier":
            passed[0] += 1
        elif each.kind == "access":
            yield "s" if each.shared else "g", each.term.value(given) % ELEMENTS, each.writes, passed[0]
        elif each.kind == "if":
            if each.term.value(given) < each.limit.value(given):
                yield from events(each.body, given, passed)
        else:
            for number in range(each.term.value(given)):
                yield from events(each.body, given | {each.name: number}, passed)


def races(body: list[Statement], block: int, ctas: int, n: int) -> bool:
    """Whether a launch has a race."""
    shared, outer = defaultdict[object, list[tuple[int, bool]]](list), defaultdict[object, list[tuple[int, int, int, bool]]](list)
    for cta in range(ctas):
        for tid in range(block):
            for array, element, writes, interval in events(body, {"tid": tid, "ctaid": cta, "n": n}, [0]):
                if array == "s":
                    shared[cta, element, interval].append((tid, writes))
                else:
                    outer[element].append((cta, tid, interval, writes))
    for met in shared.values():
        if any(writes for _, writes in met) and any(one != other and (w or v) for one, w in met for other, v in met):
            return True
    return any(_meets(met) for met in outer.values())


def _meets(met: list[tuple[int, int, int, bool]]) -> bool:
    for place, (cta, tid, interval, writes) in enumerate(met):
        for other_cta, other_tid, other_interval, other_writes in met[:place]:
            if (writes or other_writes) and (cta != other_cta or (tid != other_tid and interval == other_interval)):
                return True
    return False


class Maker:
    """Makes a random program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0

    def program(self) -> list[Statement]:
        """A few statements, at least one of which writes."""
        found = self._body(3, ("tid", "ctaid", "n"), uniform=True)
        return [*found, self._access(("tid", "ctaid", "n"), writes=True)]

    def _body(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> list[Statement]:
        return [self._statement(depth, leaves, uniform=uniform) for _ in range(self._random.randint(1, 3))]

    def _statement(self, depth: int, leaves: tuple[str, ...], *, uniform: bool) -> Statement:
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


class Writer:
    """Writes a program as PTX."""

    def __init__(self) -> None:
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
        if not term.parts:
            return self._registers[term.how] if term.how != "const" else str(term.constant)
        one = self._term(term.parts[0])
        other = self._term(term.parts[1]) if len(term.parts) > 1 else str(term.constant)
        opcode = {
            "add": "add.s32", "sub": "sub.s32", "addc": "add.s32", "mulc": "mul.lo.s32", "shlc": "shl.b32", "shrc": "shr.u32",
            "andc": "and.b32", "xorc": "xor.b32", "remc": "rem.u32", "divc": "div.u32",
        }[term.how]  # fmt: skip
        found = self._new()
        self._lines.append(f"{opcode} {found}, {one}, {other};")
        return found

    def _body(self, body: list[Statement]) -> None:
        for each in body:
            getattr(self, f"_{each.kind}")(each)

    def _barrier(self, _: Statement) -> None:
        self._lines.append("bar.sync 0;")

    def _access(self, each: Statement) -> None:
        index, masked, wide = self._term(each.term), self._new(), f"%rd{self._count + 5}"
        self._lines.append(f"and.b32 {masked}, {index}, {ELEMENTS - 1};")
        if each.shared:
            base, place = self._new(), self._new()
            self._lines += [f"mov.u32 {base}, s;", f"mad.lo.s32 {place}, {masked}, 4, {base};"]
        else:
            place = wide
            self._lines += [f"mul.wide.u32 {wide}, {masked}, 4;", f"add.s64 {wide}, %rd2, {wide};"]
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
        self._lines += [
            f"mov.u32 {counter}, 0;",
            f"$T{number}:",
            f"setp.ge.u32 %p{number}, {counter}, {count};",
            f"@%p{number} bra $E{number};",
        ]
        self._body(each.body)
        self._lines += [f"add.s32 {counter}, {counter}, 1;", f"bra $T{number};", f"$E{number}:"]
