"""Readings of the clocks that give the order of the accesses to one address (global_memory.py).

A launch has many clocks. The one of an address follows from its lower half: one for the widest vector.
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.instrument.record.text import text
from consan.instrument.rewriting.emit import Snippet

_WIDEST = 32  # bytes of the widest vector
DRAW, LOOK = "atom.global.add.u32 {}, [{}], 1;", "ld.volatile.global.u32 {}, [{}];"  # of a clock
CLOCK = "%__consan_pc"  # the address of the clock of a strong access
SHARED_MARK = 0x80000000  # in place of the upper half of an address: one of shared memory


def mark_shared(snippet: Snippet, wide: str, low: str, high: str, window: str) -> None:
    """Turn the two words of a generic address into the offset and the mark of shared memory, if the address lies there.

    `window`: shared, or shared::cluster, in which other CTAs of the cluster are, too.
    """
    inside, near, other = snippet.register("pred"), snippet.register("b64"), snippet.register("b32")
    snippet.add(f"isspacep.{window} {inside}, {wide};")
    snippet.add(f"cvta.to.{window}.u64 {near}, {wide};")
    snippet.add(f"cvt.u32.u64 {other}, {near};")
    snippet.add(f"selp.b32 {low}, {other}, {low}, {inside};")
    snippet.add(f"selp.b32 {high}, {SHARED_MARK}, {high}, {inside};")


def find_clock(snippet: Snippet, low: str) -> None:
    """The clock of an address, by the lower half of it: one for the widest vector."""
    number, clocks = snippet.register("b32"), snippet.register("b64")
    snippet.add(f"shr.u32 {number}, {low}, {_WIDEST.bit_length() - 1}; mul.lo.u32 {number}, {number}, {text.FACTOR:#x};")
    snippet.add(f"shr.u32 {number}, {number}, {33 - text.CLOCKS_OF_LAUNCH.bit_length()};")
    snippet.add(f"ld.const.u64 {clocks}, [{text.PLACES}+{text.CLOCKS}]; mad.wide.u32 {CLOCK}, {number}, {text.CLOCK_BYTES}, {clocks};")


def read_first(snippet: Snippet, place: int, reads: str) -> None:
    """Read the clock and wait for the number. A clock without a number left ends the launch."""
    number, lost = snippet.register("b32"), snippet.register("pred")
    snippet.add(f"mov.u32 {number}, 0;")
    snippet.add(reads.format(number, CLOCK))
    snippet.add(text.store(place, number).strip())
    snippet.add(f"setp.eq.u32 {lost}, {number}, -1; @{lost} trap;")


def read_last(snippet: Snippet, place: int, reads: str, seen: Iterable[str]) -> None:
    """Read the clock once the access has read the values `seen`: the address depends on them, though it is the same with each."""
    number, zero, wide = snippet.register("b32"), snippet.register("b32"), snippet.register("b64")
    for value in seen:
        snippet.add(f"ld.const.u32 {zero}, [{text.PLACES}+{text.ZERO}]; and.b32 {zero}, {zero}, {value};")
        snippet.add(f"cvt.u64.u32 {wide}, {zero}; add.u64 {CLOCK}, {CLOCK}, {wide};")
    snippet.add(f"mov.u32 {number}, 0;")
    snippet.add(reads.format(number, CLOCK))
    snippet.add(text.store(place, number).strip())
