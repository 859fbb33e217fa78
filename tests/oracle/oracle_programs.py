"""Random valid PTX kernels: CTAs of a few warps, each with a program of its own, on a small buffer, so that conflicts are frequent.

Here are the parts of programs, and programs of accesses and barriers; oracle_strategies.py lists all kinds. A program is a list of
operations that every thread runs in order, each under a guard on its thread or lane number. It ends whatever the operations are:
a barrier's guard is a set of whole warps that its thread count names, every `bar.arrive` has a number of its own, and each mbarrier
phase is arrived at in full, by operations that no wait of a later phase precedes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import draws as st

THREADS = 128
BUFFER = 256  # bytes of shared memory that data accesses use
MBARS = 4  # mbarriers
HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<2>, %done;
  .reg .b16 %h<3>;
  .reg .b32 %r<8>, %x<4>, %lane, %warp, %thread, %cta, %buf, %bars, %loop, %trips;
  .reg .b64 %q<4>, %in, %out, %token;
  .reg .f32 %d<4>;
  .shared .align 128 .b8 buf[BUFFER];
  .shared .align 8 .b64 bars[4];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %in, %in;
  cvta.to.global.u64 %out, %out;
  mov.u32 %thread, %tid.x;
  mov.u32 %cta, %ctaid.x;
  cvt.u16.u32 %h1, %thread;
  and.b32 %lane, %thread, 31;
  shr.u32 %warp, %thread, 5;
  mov.u32 %buf, buf;
  mov.u32 %bars, bars;
  mov.u32 %x0, %thread;
  mov.u32 %x1, 77;
  mov.u32 %x2, %thread;
  mov.u32 %x3, 99;
"""
ENTRY = ".visible .entry k(.param .u64 in, .param .u64 out)\n"
CLUSTER_HEAD = """  .reg .b32 %rank, %who, %peer, %pbars;
  mov.u32 %rank, %cluster_ctarank;
  mad.lo.u32 %who, %rank, THREADS, %thread;
  xor.b32 %pbars, %rank, 1;
  mapa.shared::cluster.u32 %peer, %buf, %pbars;
  mapa.shared::cluster.u32 %pbars, %bars, %pbars;
  mov.u32 %cta, %clusterid.x;
"""
WIDTHS = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32", 16: "v4.u32"}
REGISTERS = {1: "%h1", 2: "%h1", 4: "%x0", 8: "{%x0, %x1}", 16: "{%x0, %x1, %x2, %x3}"}
SINKS = {1: "%h2", 2: "%h2", 4: "%r5", 8: "{%r5, %r6}", 16: "{%r4, %r5, %r6, %r7}"}


@dataclass(frozen=True)
class Guard:
    """Which threads take part: those whose `of` (thread, lane, warp, or all; in a cluster rank or who) compares with `value`."""

    of: str = ""
    compare: str = "eq"
    value: int = 0

    def ptx(self) -> list[str]:
        """What sets %p1."""
        return [f"setp.{self.compare}.u32 %p1, %{self.of}, {self.value};"] if self.of else []

    @property
    def prefix(self) -> str:
        """The guard of an instruction."""
        return "@%p1 " if self.of else ""


@dataclass(frozen=True)
class Place:
    """An address: base + offset + ((thread + shift) & mask) * stride + %loop * step."""

    offset: int
    shift: int
    mask: int
    stride: int
    step: int = 0
    base: str = "%buf"

    def ptx(self) -> list[str]:
        """What leaves the address in %r1."""
        moves = [f"mad.lo.u32 %r1, %loop, {self.step}, %r1;"] if self.step else []
        return [
            f"add.u32 %r1, %thread, {self.shift};",
            f"and.b32 %r1, %r1, {self.mask};",
            f"mad.lo.u32 %r1, %r1, {self.stride}, {self.base};",
            f"add.u32 %r1, %r1, {self.offset};",
            *moves,
        ]


class Part(Protocol):
    """A part of a program."""

    def ptx(self) -> list[str]:
        """Its lines."""

    def simpler(self) -> list[Part]:
        """What could take its place in a smaller program."""


@dataclass(frozen=True)
class Operation:
    """Lines of PTX; those with `{g}` are guarded."""

    lines: tuple[str, ...]
    guard: Guard = Guard()
    place: Place | None = None

    def ptx(self) -> list[str]:
        """All lines."""
        address = self.place.ptx() if self.place is not None else []
        return [*address, *self.guard.ptx(), *(line.replace("{g}", self.guard.prefix) for line in self.lines)]

    def simpler(self) -> list[Part]:
        """It is as simple as can be."""
        return []


@dataclass(frozen=True)
class Program:
    """What one CTA or cluster does, with how many of its warps; the others leave at once."""

    warps: int
    operations: tuple[Part, ...]

    def ptx(self, number: int) -> str:
        """The part of the kernel that CTA or cluster `number` runs."""
        body = [line for operation in self.operations for line in operation.ptx()]
        start = [f"P{number}:", f"setp.ge.u32 %p1, %warp, {self.warps};", "@%p1 ret;"]
        lines = [line.replace("{n}", str(number)) for line in (*start, *body)]
        return "\n".join(f"  {line}" for line in lines) + "\n  ret;\n"

    def smaller(self, k: int) -> list[Program]:
        """Programs without part k, or with a simpler one in its place."""
        parts = [(), *((one,) for one in self.operations[k].simpler())]
        return [replace(self, operations=self.operations[:k] + part + self.operations[k + 1 :]) for part in parts]


@dataclass(frozen=True, repr=False)
class Batch:
    """Programs of one kernel, each of a CTA, or of a cluster of `ctas`: the shadow runtime, which costs most, is decoded once for all."""

    programs: tuple[Program, ...]
    threads: int = THREADS
    buffer: int = BUFFER
    ctas: int = 1

    @property
    def grid(self) -> int:
        """CTAs of the launch."""
        return len(self.programs) * self.ctas

    @property
    def head(self) -> str:
        """The kernel's beginning."""
        head = HEAD.replace("BUFFER", str(self.buffer))
        if self.ctas == 1:
            return head
        entry = f"{ENTRY}.explicitcluster .reqnctapercluster {self.ctas}, 1, 1\n"
        return head.replace(ENTRY, entry) + CLUSTER_HEAD.replace("THREADS", str(self.threads))

    @property
    def ptx(self) -> str:
        """The module."""
        numbers = range(len(self.programs))
        choice = "".join(f"  setp.eq.u32 %p1, %cta, {number};\n  @%p1 bra P{number};\n" for number in numbers)
        return self.head + choice + "".join(program.ptx(number) for number, program in enumerate(self.programs)) + "}\n"

    def __repr__(self) -> str:
        return f"# grid {self.grid}, block {self.threads}\n{self.ptx}"


def guards() -> st.SearchStrategy[Guard]:
    """Everybody, a few lanes, a warp, or a single thread."""
    return st.one_of(
        st.just(Guard()),
        st.builds(Guard, st.just("lane"), st.sampled_from(["eq", "lt", "ge"]), st.integers(1, 31)),
        st.builds(Guard, st.just("warp"), st.sampled_from(["eq", "ne"]), st.integers(0, 3)),
        st.builds(Guard, st.just("thread"), st.sampled_from(["eq", "lt", "ge"]), st.integers(0, 127)),
    )


@st.composite
def places(draw: Any, width: int, windows: tuple[int, ...] = (0,)) -> Place:
    """An aligned place for an access, in one of the windows of BUFFER bytes."""
    stride = width * draw(st.sampled_from([1, 1, 1, 2]))
    slots = BUFFER // stride
    mask = draw(st.sampled_from([m for m in (0, 1, 31, 63, 127) if m < slots]))
    offset = draw(st.integers(0, (BUFFER - (mask * stride + width)) // width)) * width
    return Place(offset + draw(st.sampled_from(windows)), draw(st.sampled_from([0, 0, 0, 1, 5, 32])), mask, stride)


@st.composite
def accesses(draw: Any, windows: tuple[int, ...] = (0,)) -> Operation:
    """A load, a store or an atomic."""
    what = draw(st.sampled_from(["ld", "ld", "st", "st", "red", "atom"]))
    width = draw(st.sampled_from([1, 2, 4, 4, 4, 8, 16])) if what in ("ld", "st") else 4
    line = {
        "ld": f"{{g}}ld.shared.{WIDTHS[width]} {SINKS[width]}, [%r1];",
        "st": f"{{g}}st.shared.{WIDTHS[width]} [%r1], {REGISTERS[width]};",
        "red": "{g}red.shared.add.u32 [%r1], %x1;",
        "atom": "{g}atom.shared.exch.b32 %r5, [%r1], %x1;",
    }[what]
    return Operation((line,), draw(guards()), draw(places(width, windows)))


@st.composite
def strong_accesses(draw: Any) -> Operation:
    """A relaxed or volatile access."""
    line = draw(
        st.sampled_from(
            [
                "{g}ld.relaxed.cta.shared.u32 %r5, [%r1];",
                "{g}st.relaxed.cta.shared.u32 [%r1], %x0;",
                "{g}ld.volatile.shared.u32 %r5, [%r1];",
                "{g}st.volatile.shared.u32 [%r1], %x0;",
            ]
        )
    )
    return Operation((line,), draw(guards()), draw(places(4)))


FULL = Operation(("bar.sync 0;",))
CLEAR = (Operation(("{g}st.shared.v2.u32 [%r1], {%x0, %x1};",), Guard("thread", "lt", 32), Place(0, 0, 31, 8)), FULL)


def warp_barriers() -> st.SearchStrategy[Operation]:
    """bar.warp.sync of all lanes or of a part of them."""
    halves = [(Guard("lane", "lt", 16), 0xFFFF), (Guard("lane", "ge", 16), 0xFFFF0000), (Guard("lane", "lt", 4), 0xF)]
    partial = [Operation((f"{{g}}bar.warp.sync {mask:#x};",), guard) for guard, mask in halves]
    return st.sampled_from([Operation(("bar.warp.sync 0xffffffff;",))] * 3 + partial)


def named(number: int, warps: int) -> st.SearchStrategy[Operation]:
    """A barrier of the first or the last warps, or one at which some only arrive."""
    if warps < 2:
        return st.just(FULL)
    some = st.integers(1, warps - 1)

    def partial(count: int) -> Operation:
        return Operation((f"{{g}}bar.sync {number}, {32 * count};",), Guard("warp", "lt", count))

    def split(first: int) -> Operation:
        arrive, wait = f"@%p1 bar.arrive {number}, {32 * warps};", f"@!%p1 bar.sync {number}, {32 * warps};"
        return Operation((arrive, wait), Guard("warp", "lt", first))

    return st.one_of(some.map(partial), some.map(split))


@st.composite
def copies(draw: Any) -> Operation:
    """Non-bulk cp.async, a commit or a wait."""
    what = draw(st.sampled_from(["copy", "copy", "copy", "commit", "commit", "wait", "wait", "all"]))
    guard = draw(guards())
    if what == "copy":
        width = draw(st.sampled_from([4, 8, 16]))
        kind = "cg" if width == 16 else "ca"
        return Operation((f"{{g}}cp.async.{kind}.shared.global [%r1], [%in], {width};",), guard, draw(places(width)))
    line = {"commit": "cp.async.commit_group;", "wait": f"cp.async.wait_group {draw(st.integers(0, 2))};", "all": "cp.async.wait_all;"}[
        what
    ]
    return Operation((f"{{g}}{line}",), guard if draw(st.integers(0, 3)) == 0 else Guard())


@st.composite
def synchronous(draw: Any, extra: Any = None) -> Program:
    """Accesses and barriers; `extra` are further operations."""
    warps = draw(st.integers(1, 4))
    operations = [*draw(st.sampled_from([(), CLEAR, CLEAR, CLEAR]))]
    density = draw(st.sampled_from([0, 1, 2, 3]))
    numbers = iter(range(1, 16))
    kinds = ["access"] * 5 + ["full", "warp", "named", "strong"] + (["extra"] * 5 if extra is not None else [])
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=14)):
        if kind == "named" and (number := next(numbers, None)) is not None:
            operations.append(draw(named(number, warps)))
        elif kind == "extra":
            operations.append(draw(extra))
        elif kind in ("access", "strong"):
            operations.append(draw(accesses() if kind == "access" else strong_accesses()))
        else:
            operations.append(draw(warp_barriers()) if kind == "warp" else FULL)
        if draw(st.integers(0, 3)) < density:
            operations.append(FULL)
    return Program(warps, tuple(operations))


def with_copies() -> st.SearchStrategy[Program]:
    """The same with cp.async."""
    return synchronous(copies())
