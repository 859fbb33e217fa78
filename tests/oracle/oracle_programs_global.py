"""Random programs on global memory: a few CTAs with tiles of one small buffer, flags, counters, last blocks and barriers of the grid.

Each part of a program is run by all threads in the same order, and whoever waits waits for something that parts before it, or its own, do
in any case: so a program ends whatever its parts are. Most have a fence, an order or a scope that may be missing.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Any

import draws as st
from oracle_programs import HEAD, SINKS, Batch, Guard, Operation, Part, Program

THREADS = 64
CTAS = 3
TILE = 64  # bytes of a CTA's tile
FLAGS = 512  # where flags and counters begin
BYTES = 1024  # of a program
WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32", 16: "v4.u32"}
VALUES = {1: "%h1", 2: "%h1", 4: "%x0", 8: "{%x0, %x1}", 16: "{%x0, %x1, %x2, %x3}"}
HEAD_OF_GRID = """  .reg .b32 %group, %rank, %next, %who;
  .reg .b64 %data, %at;
  div.u32 %group, %cta, CTAS;
  rem.u32 %rank, %cta, CTAS;
OF_RANK  add.u32 %next, %rank, 1;
  rem.u32 %next, %next, ALL;
  mad.lo.u32 %who, %rank, THREADS, %thread;
  mad.wide.u32 %data, %group, BYTES, %out;
  mov.u32 %cta, %group;
"""
OF_RANK = """  .reg .b32 %device;
  ld.param.u32 %device, [device];
  mad.lo.u32 %rank, %device, CTAS, %rank;
"""


@dataclass(frozen=True, repr=False)
class GlobalBatch(Batch):
    """Programs of one kernel, each of so many CTAs that are no cluster on each of so many devices; in a program `rank` numbers its CTAs."""

    threads: int = THREADS
    ctas: int = CTAS
    ranks: int = 1

    @property
    def head(self) -> str:
        """The kernel's beginning."""
        several = self.ranks > 1
        sizes = {
            "OF_RANK": OF_RANK if several else "",
            "CTAS": self.ctas,
            "ALL": self.ctas * self.ranks,
            "THREADS": THREADS,
            "BYTES": BYTES,
        }
        own = functools.reduce(lambda text, size: text.replace(size, str(sizes[size])), sizes, HEAD_OF_GRID)
        head = HEAD.replace("BUFFER", str(self.buffer)) + own
        return head.replace(".param .u64 out", ".param .u64 out, .param .u32 device") if several else head


@dataclass(frozen=True)
class Tile:
    """An address in global memory: offset + tile * TILE + ((thread + shift) & mask) * stride."""

    tile: str  # %rank, %next, or empty
    offset: int
    shift: int
    mask: int
    stride: int

    def ptx(self) -> list[str]:
        """What leaves the address in %at."""
        own = [f"mad.lo.u32 %r1, %{self.tile}, {TILE}, %r1;"] if self.tile else []
        return [
            f"add.u32 %r1, %thread, {self.shift};",
            f"and.b32 %r1, %r1, {self.mask};",
            f"mul.lo.u32 %r1, %r1, {self.stride};",
            *own,
            f"add.u32 %r1, %r1, {self.offset};",
            "cvt.u64.u32 %at, %r1;",
            "add.u64 %at, %at, %data;",
        ]


@dataclass(frozen=True)
class Access:
    """An access of threads that a guard names."""

    line: str
    guard: Guard
    tile: Tile

    def ptx(self) -> list[str]:
        """All lines."""
        return [*self.tile.ptx(), *self.guard.ptx(), f"{self.guard.prefix}{self.line}"]

    def simpler(self) -> list[Part]:
        """The same by one thread."""
        return [] if self.guard.of == "who" else [replace(self, guard=Guard("who", "eq", 0))]


@dataclass(frozen=True)
class Steps:
    """Lines that belong together; `{k}` is the number of the part."""

    lines: tuple[str, ...]
    number: int

    def ptx(self) -> list[str]:
        """All lines."""
        return [line.replace("{k}", f"{{n}}_{self.number}") for line in self.lines]

    def simpler(self) -> list[Part]:
        """The same without a fence."""
        fences = [k for k, line in enumerate(self.lines) if line.startswith("fence")]
        return [replace(self, lines=self.lines[:k] + self.lines[k + 1 :]) for k in fences]


SCOPES = st.sampled_from(["gpu", "gpu", "gpu", "gpu", "sys", "cluster", "cta"])
FULL = Operation(("bar.sync 0;",))


@st.composite
def guards(draw: Any) -> Guard:
    """Everybody, a CTA, a warp, a lane, or one thread."""
    return draw(
        st.sampled_from(
            [Guard(), Guard(), Guard("rank", "eq", 0), Guard("rank", "ne", 1), Guard("warp", "eq", 0), Guard("thread", "eq", 0),
             Guard("lane", "lt", 4), Guard("who", "eq", THREADS), Guard("who", "eq", 0)]
        )
    )  # fmt: skip


@st.composite
def tiles(draw: Any, ctas: int, width: int) -> Tile:
    """A place in the own tile, in the next CTA's, or in what all share."""
    tile = draw(st.sampled_from(["rank", "rank", "rank", "next", "next", ""]))
    mask = draw(st.sampled_from([m for m in (0, 3, 15, 63) if m * width < TILE]))
    span = (TILE if tile else TILE * ctas) - (mask * width + width)
    beyond = draw(st.sampled_from([0] * 7 + [width]))  # a tile that overlaps the next one by an element
    return Tile(tile, draw(st.integers(0, span // width)) * width + beyond, draw(st.sampled_from([0, 0, 1, 32])), mask, width)


@st.composite
def accesses(draw: Any, ctas: int) -> Access:
    """A load, a store or an atomic."""
    what = draw(st.sampled_from(["ld", "ld", "ld", "st", "st", "st", "red", "atom", "strong", "strong", "nc"]))
    width = draw(st.sampled_from([1, 2, 4, 4, 4, 8, 16])) if what in ("ld", "st", "nc") else 4
    scope = draw(SCOPES)
    line = {
        "ld": f"ld.global.{WORDS[width]} {SINKS[width]}, [%at];",
        "nc": f"ld.global.nc.{WORDS[width]} {SINKS[width]}, [%at];",
        "st": f"st.global.{WORDS[width]} [%at], {VALUES[width]};",
        "red": f"red.relaxed.{scope}.global.add.u32 [%at], %x1;",
        "atom": f"atom.relaxed.{scope}.global.exch.b32 %r5, [%at], %x1;",
        "strong": draw(
            st.sampled_from(
                [f"ld.relaxed.{scope}.global.u32 %r5, [%at];", f"st.relaxed.{scope}.global.u32 [%at], %x0;",
                 "ld.volatile.global.u32 %r5, [%at];", "st.volatile.global.u32 [%at], %x0;"]
            )
        ),
    }[what]  # fmt: skip
    return Access(line, draw(guards()), draw(tiles(ctas, width)))


@st.composite
def fences(draw: Any) -> list[str]:
    """A memory fence, most often none."""
    kind = draw(st.sampled_from(["", "", "acq_rel", "acq_rel", "sc", "sc", "acquire", "release"]))
    return [f"fence.{kind}.{draw(SCOPES)};"] if kind else []


@st.composite
def signals(draw: Any, word: str, value: int) -> list[str]:
    """A store of a flag, with or without release."""
    scope = draw(SCOPES)
    return [
        draw(
            st.sampled_from(
                [f"st.release.{scope}.global.u32 {word}, {value};"] * 2 + [f"st.relaxed.{scope}.global.u32 {word}, {value};"] * 3
                + [f"st.volatile.global.u32 {word}, {value};", f"red.release.{scope}.global.add.u32 {word}, {value};",
                   f"atom.relaxed.{scope}.global.add.u32 %r5, {word}, {value};", f"st.global.u32 {word}, {value};"]
            )
        )
    ]  # fmt: skip


@st.composite
def polls(draw: Any, word: str, value: int, label: str) -> list[str]:
    """A loop that ends when a word has a value, with or without acquire."""
    scope = draw(SCOPES)
    load = draw(
        st.sampled_from(
            [f"ld.acquire.{scope}.global.u32 %r5, {word};"] * 3 + [f"ld.relaxed.{scope}.global.u32 %r5, {word};"] * 3
            + [f"ld.volatile.global.u32 %r5, {word};", f"atom.acquire.{scope}.global.or.b32 %r5, {word}, 0;"]
        )
    )  # fmt: skip
    return [f"{label}:", load, f"setp.lt.u32 %p0, %r5, {value};", f"@%p0 bra {label};"]


def only(who: str, value: int, lines: list[str], label: str) -> list[str]:
    """Lines for the threads with a number that is `value`."""
    return [f"setp.ne.u32 %p1, %{who}, {value};", f"@%p1 bra {label};", *lines, f"{label}:"]


@st.composite
def handoffs(draw: Any, ctas: int, number: int) -> Steps:
    """A thread of one CTA tells one of another; in between may be a third."""
    word, chained = f"[%data+{FLAGS + 16 * number}]", draw(st.integers(0, 3)) == 0
    first, second, third = draw(st.permutations(range(ctas)))[:3]
    lines = draw(st.sampled_from([[], ["bar.sync 0;"]]))
    lines = [*draw(fences()), *lines] if draw(st.integers(0, 2)) == 0 else lines
    lines = [*lines, *only("who", first * THREADS, [*draw(fences()), *draw(signals(word, 1))], "A{k}")]
    if chained:
        scope = draw(SCOPES)
        link = draw(st.sampled_from([f"atom.relaxed.{scope}.global.add.u32 %r5, {word}, 1;", f"st.relaxed.{scope}.global.u32 {word}, 2;"]))
        lines += only("who", third * THREADS, [*draw(polls(word, 1, "P{k}")), *draw(fences()), link], "B{k}")
    waiter = second * THREADS + draw(st.sampled_from([0, 0, 32]))
    lines += only("who", waiter, [*draw(polls(word, 1 + chained, "Q{k}")), *draw(fences())], "C{k}")
    return Steps((*lines, *draw(st.sampled_from([[], ["bar.sync 0;"], ["bar.sync 0;"]]))), number)


@st.composite
def grid_barriers(draw: Any, ctas: int, number: int) -> Steps:
    """All CTAs meet at a counter: each thread 0 adds and waits."""
    word, scope = f"[%data+{FLAGS + 16 * number}]", draw(SCOPES)
    add = draw(st.sampled_from([f"red.release.{scope}.global.add.u32 {word}, 1;", f"atom.relaxed.{scope}.global.add.u32 %r5, {word}, 1;",
                                f"atom.acq_rel.{scope}.global.add.u32 %r5, {word}, 1;"]))  # fmt: skip
    early = draw(fences()) if draw(st.integers(0, 2)) == 0 else []
    lines = [*draw(fences()), add, *draw(polls(word, ctas, "Q{k}")), *draw(fences())]
    meet = draw(st.sampled_from([["bar.sync 0;"]] * 4 + [[]]))
    return Steps((*early, *meet, *only("thread", 0, lines, "A{k}"), *meet), number)


@st.composite
def last_blocks(draw: Any, ctas: int, number: int) -> Steps:
    """The CTA that comes last at a counter goes on to read what all have written; it may reset the counter."""
    word, scope = f"[%data+{FLAGS + 16 * number}]", draw(SCOPES)
    sem = draw(st.sampled_from(["relaxed", "relaxed", "acq_rel"]))
    reset = draw(st.sampled_from([[], [f"st.global.u32 {word}, 0;"]]))
    count = [*draw(fences()), f"atom.{sem}.{scope}.global.add.u32 %r5, {word}, 1;", *draw(fences()), "st.shared.u32 [%buf], %r5;"]
    early = draw(fences()) if draw(st.integers(0, 1)) == 0 else []
    read = ["ld.shared.u32 %r6, [%buf];", f"setp.ne.u32 %p1, %r6, {ctas - 1};", "@%p1 bra B{k};"]
    mask, offset = draw(st.sampled_from([(0, 0), (15, 0), (15, TILE)]))
    tail = [*Tile("", offset, 0, mask, 4).ptx(), "ld.global.u32 %r5, [%at];", *(only("thread", 0, reset, "C{k}") if reset else [])]
    return Steps((*early, "bar.sync 0;", *only("thread", 0, count, "A{k}"), "bar.sync 0;", *read, *tail, "B{k}:", "bar.sync 0;"), number)


@st.composite
def global_memory(draw: Any, ctas: int = CTAS) -> Program:
    """A program: tiles are written, something that may order follows, and tiles are read."""
    operations: list[Part] = []
    kinds = ["access"] * 6 + ["handoff"] * 3 + ["grid", "grid", "last", "full", "warp", "fence"]
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=10))):
        if kind == "access":
            operations.append(draw(accesses(ctas)))
        elif kind == "fence":
            operations += [Operation(tuple(lines)) for lines in [draw(fences())] if lines]
        elif kind in ("full", "warp"):
            operations.append(FULL if kind == "full" else Operation(("bar.warp.sync 0xffffffff;",)))
        else:
            operations.append(draw({"handoff": handoffs, "grid": grid_barriers, "last": last_blocks}[kind](ctas, number)))
    return Program(THREADS // 32, tuple(operations))


OTHER_SCOPE = {".gpu": ".sys", ".sys": ".gpu"}


@st.composite
def of_ranks(draw: Any, ctas: int) -> Program:
    """The same for several devices: where a program of one has `.gpu`, it most often has `.sys`."""

    def lines(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(scope(line) if draw(st.integers(0, 7)) else line for line in given)

    def scope(line: str) -> str:
        return re.sub(r"\.(gpu|sys)\b", lambda found: OTHER_SCOPE[found[0]], line)

    def part(one: Part) -> Part:
        if isinstance(one, Access):
            return replace(one, line=lines((one.line,))[0])
        return replace(one, lines=lines(one.lines)) if isinstance(one, Steps | Operation) else one

    program = draw(global_memory(ctas))
    return replace(program, operations=tuple(map(part, program.operations)))
