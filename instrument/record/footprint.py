"""Computes the bytes of global memory that each thread touches, by a slice of the kernel that has these addresses alone.

Addresses in global memory are not hashed: they differ in each CTA. They decide a finding only where an access meets the other side of an
asynchronous copy (consan/checker/source/map_uses.hpp). So the host computes, for each place in the text that has such a side,
the first byte and the last that a thread touches there. If no spans of two kinds that can meet overlap, no finding
depends on an address. A span holds all bytes in between, and more where a guard or a size is not known: then some CTAs are
replayed without need, but none is left out.

The spans of a tensor copy are not computed: a tensor map is a constant of the launch, and a copy stays inside its tensor.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from consan.instrument.passes.emit import Snippet, Unsupported, wide_address
from consan.instrument.passes.flow import Key, guard_of
from consan.instrument.ptx import Instruction, Operand
from consan.instrument.record import text
from consan.instrument.record.computed import Certainty, Computed, LaunchConstant
from consan.instrument.record.templates import LINE_BYTES
from consan.instrument.record.words import Manner, keys_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

SPAN_BYTES = 16  # of a thread and a side: the complement of the first address, and the address behind the last; 0 where there is none
ENDED = "$__consan_ended"
FIRST, LAST = "%__consan_first", "%__consan_last"


class SideKind(enum.IntEnum):
    """The kinds of operation that have a side in global memory."""

    WRITE = 0
    READ = 1
    SOURCE = 2  # of an asynchronous copy
    RESULT = 3


MEETING = ((SideKind.WRITE, SideKind.SOURCE), (SideKind.WRITE, SideKind.RESULT), (SideKind.READ, SideKind.RESULT))


@dataclass(frozen=True)
class GlobalSide:
    """A place in the text. `stored`: its addresses are in the log; `tensor`: where the words of its tensor map are among the constants."""

    kind: SideKind
    stored: bool = False
    tensor: tuple[int, ...] = ()


@dataclass(frozen=True)
class SideBytes:
    """How many bytes a side has. `operand`: what that follows from; `text`: makes a number or a register; at most `most` (0: no limit)."""

    text: Callable[[Snippet], str]
    operand: Operand | None = None
    most: int = 0

    @classmethod
    def of(cls, nbytes: int) -> SideBytes:
        """A number of bytes."""
        return cls(lambda _: str(nbytes))


@dataclass
class Footprint:
    """The sides of one kernel. `starts`: of their instructions; `needs`: registers that addresses, sizes and guards follow from."""

    sides: list[GlobalSide] = field(default_factory=list)
    starts: set[int] = field(default_factory=set)
    needs: list[frozenset[Key]] = field(default_factory=list)

    @property
    def measured(self) -> int:
        """How many sides are computed. They come first."""
        return sum(not side.tensor for side in self.sides)


def add_tensor(kernel: KernelRewrite, constants: list[LaunchConstant], *, loads: bool) -> None:
    """A tensor copy. `constants`: the words of its map."""
    if kernel.computed is not None:
        side = GlobalSide(SideKind.SOURCE if loads else SideKind.RESULT, tensor=tuple(map(kernel.computed.slot, constants)))
        kernel.touched.sides.append(side)


def add(kernel: KernelRewrite, instruction: Instruction, kind: SideKind, address: Operand, space: str, extent: SideBytes) -> None:
    """Another side, right behind the words with its address."""
    footprint, scope, guard = kernel.touched, instruction.scope, guard_of(instruction)
    keys = keys_of([address], scope)
    of_size = keys_of([extent.operand], scope) if extent.operand is not None else frozenset()
    footprint.starts.add(instruction.start)
    footprint.needs += [each for each in (keys, of_size, guard and frozenset({guard.register})) if each]
    if kernel.manner is not Manner.FOOTPRINT:
        return
    assert kernel.computed is not None
    stored = not _known(kernel.computed, keys)
    footprint.sides.insert(footprint.measured, GlobalSide(kind, stored))
    snippet = Snippet()
    wide = _stored(snippet, kernel) if stored else wide_address(snippet, address, scope, "global" if space == "global" else "")
    size = extent.text(snippet) if _known(kernel.computed, of_size) else str(extent.most)
    if size == "0":
        raise Unsupported("a size that is not known")
    _extend(snippet, footprint.measured - 1, wide, size, known_guard(kernel.computed, instruction))
    kernel.pending += snippet.text()


def _known(computed: Computed, keys: frozenset[Key] | None) -> bool:
    return keys is not None and computed.level(keys) is not Certainty.UNKNOWN


def known_guard(computed: Computed, instruction: Instruction) -> str:
    """The guard of an instruction, if it is known."""
    own, guard = instruction.predicate, guard_of(instruction)
    if own is None or guard is None or not _known(computed, frozenset({guard.register})):
        return ""
    return f"@{'!' if own.negated else ''}{own.register} "


def _stored(snippet: Snippet, kernel: KernelRewrite) -> str:
    """The address that the block of a compact log has last."""
    low, high, wide = (snippet.register(kind) for kind in ("b32", "b32", "b64"))
    for place, half in enumerate((low, high), start=kernel.open_block().stored - 2):
        snippet.add(f"ld.global.u32 {half}, [%__consan_k+{place * LINE_BYTES}];")
    snippet.add(f"mov.b64 {wide}, {{{low}, {high}}};")
    return wide


def _extend(snippet: Snippet, number: int, wide: str, size: str, guard: str) -> None:
    """Extend the span of a side by some bytes."""
    first, behind = snippet.register("b64"), snippet.register("b64")
    snippet.add(f"not.b64 {first}, {wide};")
    if size.isdecimal():
        snippet.add(f"add.u64 {behind}, {wide}, {size};")
    else:
        some = snippet.register("pred")
        snippet.add(f"cvt.u64.u32 {behind}, {size}; setp.ne.u64 {some}, {behind}, 0; add.u64 {behind}, {wide}, {behind};")
        snippet.add(f"selp.b64 {first}, {first}, 0, {some}; selp.b64 {behind}, {behind}, 0, {some};")
    snippet.add(f"{guard}max.u64 {FIRST}{number}, {FIRST}{number}, {first};")
    snippet.add(f"{guard}max.u64 {LAST}{number}, {LAST}{number}, {behind};")


def declarations(sides: int) -> str:
    """The registers with the spans, which begin empty."""
    names = [f"{name}{number}" for number in range(sides) for name in (FIRST, LAST)]
    return "".join(f".reg .b64 {name}; mov.u64 {name}, 0;\n" for name in names)


def epilogue(sides: int, spans: str, step: str) -> str:
    """Threads store their spans at their end. `spans`: the operand with the address of those of the first side; `step`: of the next."""
    code = f"{ENDED}:\n{{\n{text.PLACE}mad.lo.u32 %__consan_a, %__consan_cta, %__consan_threads, %__consan_self;\n"
    code += f"mul.wide.u32 %__consan_v, %__consan_a, {SPAN_BYTES}; ld.const.u64 %__consan_t, {spans};\n"
    code += f"add.u64 %__consan_v, %__consan_v, %__consan_t; ld.const.u64 %__consan_t, {step};\n"
    for number in range(sides):
        code += f"st.global.v2.u64 [%__consan_v], {{{FIRST}{number}, {LAST}{number}}}; add.u64 %__consan_v, %__consan_v, %__consan_t;\n"
    return code + "}\nexit;\n"
