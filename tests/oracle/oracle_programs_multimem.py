"""Random programs of several ranks with `multimem`: each rank has an array, and one address stands for the arrays of all.

Tiles, flags and counters lie in these arrays. A thread accesses its own array, that of the next rank, or by `multimem` all of them. It
waits for words of its own. The product gets the `multimem` text. The oracle gets one in which each `multimem` is an access to the array of
each rank (8.2.3, 9.7.9.14), which `one_by_one` writes: it shares nothing with the product's rewriting.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import draws as st
import numpy as np
from oracle_programs import Operation, Part, Program
from oracle_programs_global import BYTES, FLAGS, FULL, THREADS, Access, GlobalBatch, Steps, fences, guards, only, polls, tiles

import consan

_HEAD = """  .reg .b64 %each<RANKS>, %many, %own, %other, %far;
LOADS
  ld.param.u64 %many, [many];
  mul.wide.u32 %at, %group, BYTES;
  add.u64 %many, %many, %at;
  mov.u64 %own, %each0;
  mov.u64 %other, %each0;
CHOICES
  mov.u64 %data, %own;
"""
_MULTIMEM = re.compile(r"^(@%p1 )?multimem\.(ld_reduce|st|red)((?:\.[a-z_]+)*?)(?:\.global)(\.add)?\.u32 (.*\[)%(many|at)(\+\d+)?(\].*)$")
_DEFAULTS = {"ld_reduce": ".weak", "st": ".weak", "red": ".relaxed.sys"}
SCOPES = st.sampled_from(["sys", "sys", "sys", "sys", "sys", "gpu", "cta"])


@dataclass(frozen=True, repr=False)
class MultimemBatch(GlobalBatch):
    """Such programs, of one CTA on each rank."""

    @property
    def head(self) -> str:
        """The kernel's beginning."""
        each = range(self.ranks)
        loads = "\n".join(
            f"  ld.param.u64 %each{rank}, [each{rank}];\n  mad.wide.u32 %each{rank}, %group, BYTES, %each{rank};" for rank in each
        )
        choices = [
            f"  setp.eq.u32 %p1, %device, {rank};\n  @%p1 mov.u64 %own, %each{rank};\n  @%p1 mov.u64 %other, %each{after};"
            for rank, after in zip(each, [*each[1:], 0], strict=True)
        ]
        own = _HEAD.replace("RANKS", str(self.ranks)).replace("LOADS", loads).replace("CHOICES", "\n".join(choices))
        params = "".join(f", .param .u64 each{rank}" for rank in each) + ", .param .u64 many"
        return super().head.replace(".param .u32 device", ".param .u32 device" + params) + own.replace("BYTES", str(BYTES))

    @property
    def oracle_ptx(self) -> str:
        """The text without `multimem`, line by line."""
        one_by_one_of = functools.partial(one_by_one, ranks=self.ranks)
        return "\n".join(map(one_by_one_of, self.ptx.splitlines())).replace("add.u64 %at, %at, %many;", "add.u64 %at, %at, %each0;") + "\n"

    def given(self, *, many: bool) -> list[list[Any]]:
        """The arguments of each rank: new arrays."""
        arrays = [np.zeros(BYTES * len(self.programs) // 4, np.int32) for _ in range(self.ranks)]
        address = consan.Multicast(arrays) if many else 0
        data, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        return [[data, out, rank, *arrays, address] for rank in range(self.ranks)]


def one_by_one(line: str, ranks: int) -> str:
    """A line with `multimem` as accesses to the array of each rank, one after the other, on one line; other lines as they are."""
    found = _MULTIMEM.match(line.strip())
    if found is None:
        assert "multimem" not in line, line
        return line
    guard, kind, how, operation, before, base, offset, after = (part or "" for part in found.groups())
    opcode = f"{'ld' if kind == 'ld_reduce' else kind}{how or _DEFAULTS[kind]}.global{operation if kind == 'red' else ''}.u32"
    accesses = []
    for rank in range(ranks):
        begin = f"%each{rank}" if base == "many" else "%far"
        move = "" if base == "many" else f"sub.u64 %far, %at, %each0; add.u64 %far, %far, %each{rank}; "
        accesses.append(f"{move}{guard}{opcode} {before}{begin}{offset}{after}")
    return " ".join(accesses)


@dataclass(frozen=True)
class _Based(Access):
    """An access to an array by another base than the own one's."""

    base: str = "%own"

    def ptx(self) -> list[str]:
        """All lines."""
        return [line.replace("%at, %at, %data", f"%at, %at, {self.base}") for line in super().ptx()]


def _how(draw: Any, kind: str) -> str:
    order = {"ld_reduce": "acquire", "st": "release", "red": "release"}[kind]
    weak = ["", ".weak"] if kind != "red" else [""]
    return draw(st.sampled_from([*weak, f".relaxed.{draw(SCOPES)}", f".{order}.{draw(SCOPES)}"]))


@st.composite
def of_many(draw: Any, ctas: int) -> Access:
    """A `multimem` access."""
    kind = draw(st.sampled_from(["ld_reduce", "st", "red"]))
    operands = {"ld_reduce": "%r5, [%at]", "st": "[%at], %x0", "red": "[%at], %x1"}[kind]
    line = f"multimem.{kind}{_how(draw, kind)}.global{'' if kind == 'st' else '.add'}.u32 {operands};"
    return _Based(line, draw(guards()), draw(tiles(ctas, 4)), "%many")


@st.composite
def of_one(draw: Any, ctas: int) -> Access:
    """An access to the own array, or that of the next rank."""
    scope = draw(SCOPES)
    strong = [f"ld.relaxed.{scope}.global.u32 %r5, [%at];", f"st.relaxed.{scope}.global.u32 [%at], %x0;"]
    update = f"red.relaxed.{scope}.global.add.u32 [%at], %x1;"
    weak = ["ld.global.u32 %r5, [%at];", "ld.global.u32 %r5, [%at];", "st.global.u32 [%at], %x0;"]
    line = draw(st.sampled_from([*weak, *strong, update]))
    return _Based(line, draw(guards()), draw(tiles(ctas, 4)), draw(st.sampled_from(["%own", "%own", "%other"])))


@st.composite
def tellings(draw: Any, ctas: int, number: int) -> Steps:
    """A thread of one rank tells all by one `multimem`; a thread of another waits for its own word."""
    word = f"{FLAGS + 16 * number}]"
    first, second = draw(st.permutations(range(ctas)))[:2]
    signal = draw(st.sampled_from(["st", "red"]))
    line = f"multimem.{signal}{_how(draw, signal)}.global{'.add' if signal == 'red' else ''}.u32 [%many+{word}, 1;"
    lines = draw(st.sampled_from([[], ["bar.sync 0;"], ["bar.sync 0;"]]))
    lines = [*lines, *only("who", first * THREADS, [*draw(_fences()), line], "A{k}")]
    lines += only("who", second * THREADS + draw(st.sampled_from([0, 32])), [*draw(_polls(f"[%own+{word}", 1)), *draw(_fences())], "C{k}")
    return Steps((*lines, *draw(st.sampled_from([[], ["bar.sync 0;"], ["bar.sync 0;"]]))), number)


@st.composite
def meetings(draw: Any, ctas: int, number: int) -> Steps:
    """All ranks meet: thread 0 of each adds to the words of all by one `multimem.red`, and waits for its own."""
    word = f"{FLAGS + 16 * number}]"
    add = f"multimem.red{_how(draw, 'red')}.global.add.u32 [%many+{word}, 1;"
    lines = [*draw(_fences()), add, *draw(_polls(f"[%own+{word}", ctas)), *draw(_fences())]
    meet = draw(st.sampled_from([["bar.sync 0;"]] * 4 + [[]]))
    return Steps((*meet, *only("thread", 0, lines, "A{k}"), *meet), number)


@st.composite
def _fences(draw: Any) -> list[str]:
    return [re.sub(r"\.gpu;", ".sys;", line) if draw(st.integers(0, 7)) else line for line in draw(fences())]


@st.composite
def _polls(draw: Any, word: str, value: int) -> list[str]:
    lines = draw(polls(word, value, "Q{k}"))
    return [re.sub(r"\.gpu\.", ".sys.", line) if draw(st.integers(0, 7)) else line for line in lines]


@st.composite
def multimem(draw: Any, ctas: int) -> Program:
    """A program: arrays are written, something that may order follows, and arrays are read."""
    operations: list[Part] = []
    kinds = ["many"] * 4 + ["one"] * 4 + ["telling"] * 3 + ["meeting"] * 3 + ["full", "fence"]
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=10))):
        if kind == "fence":
            operations += [Operation(tuple(lines)) for lines in [draw(_fences())] if lines]
        elif kind == "full":
            operations.append(FULL)
        elif kind in ("many", "one"):
            operations.append(draw({"many": of_many, "one": of_one}[kind](ctas)))
        else:
            operations.append(draw({"telling": tellings, "meeting": meetings}[kind](ctas, number)))
    return Program(THREADS // 32, tuple(operations))
