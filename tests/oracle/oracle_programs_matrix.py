"""Random programs of one warpgroup that multiplies and a warp beside it: wgmma on operands in a buffer that stores and copies fill.

The products of all four warps read both operands: A (64 x 16, f16) and B (8 x 16), in blocks of 8 rows by 16 bytes. Registers are left
alone but for wgmma.fence before each product, so nothing is to be found in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import draws as st
from oracle_programs import FULL, Guard, Operation, Part, Place, Program
from oracle_programs_async import Maker, Style

THREADS = 160
BUFFER = 4096
WINDOWS = (0, 1024, 2048, 3840)
A_PLACES, B_PLACES = (0, 1024, 2048), (0, 1024, 2048, 3072, 3840)
KINDS = (
    *("access",) * 3, *("full", "full", "warp", "fence", "named", "product", "product", "commit", "done", "done"),
    *("arrive", "arrive", "load", "load", "await", "refill", "store", "drain"),
)  # fmt: skip
GROUP = Guard("warp", "lt", 4)
CLEAR = (
    Operation(("{g}st.shared.v4.u32 [%r1], {%x0, %x1, %x2, %x3};",), Guard("thread", "lt", 128), Place(0, 0, 127, 32)),
    Operation(("{g}st.shared.v4.u32 [%r1], {%x0, %x1, %x2, %x3};",), Guard("thread", "lt", 128), Place(16, 0, 127, 32)),
)


def descriptor(target: str, offset: int) -> list[str]:
    """Leaves the descriptor of an operand without swizzle in a register: blocks of 128 bytes, first along K."""
    return [
        f"add.u32 %r2, %buf, {offset};", "shr.u32 %r2, %r2, 4;", "and.b32 %r2, %r2, 0x3fff;", f"cvt.u64.u32 {target}, %r2;",
        f"or.b64 {target}, {target}, {128 >> 4 << 16 | 256 >> 4 << 32:#x};",
    ]  # fmt: skip


class _Maker(Maker):
    def make_product(self, number: str) -> Iterator[Part]:
        """One product, by the warpgroup."""
        draw = self.draw
        lines = descriptor("%q1", draw(st.sampled_from(A_PLACES))) + descriptor("%q2", draw(st.sampled_from(B_PLACES)))
        multiply = "{g}wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %q1, %q2, 1, 1, 1, 0, 0;"
        more = ("{g}wgmma.commit_group.sync.aligned;",) if draw(st.booleans()) else ()
        yield Operation((*lines, "{g}wgmma.fence.sync.aligned;", multiply, *more), GROUP)

    def make_commit(self, number: str) -> Iterator[Part]:
        """A commit of its own."""
        yield Operation(("{g}wgmma.commit_group.sync.aligned;",), GROUP)

    def make_done(self, number: str) -> Iterator[Part]:
        """A wait, of all but some groups; sometimes with a barrier behind it."""
        pending = self.draw(st.sampled_from([0, 0, 0, 1]))
        yield Operation((f"{{g}}wgmma.wait_group.sync.aligned {pending};",), GROUP)
        if self.draw(st.booleans()):
            yield FULL

    def ending(self) -> Iterator[Part]:
        if self.draw(st.integers(0, 5)):
            yield Operation(("{g}wgmma.commit_group.sync.aligned;", "{g}wgmma.wait_group.sync.aligned 0;"), GROUP)
        yield from super().ending()

    def storer(self) -> Guard:
        return Guard("thread", "eq", self.draw(st.sampled_from([0, 32, 128])))


@st.composite
def matrix(draw: Any) -> Program:
    """Products of a warpgroup, with stores, copies, mbarriers and a fifth warp."""
    clear = (*CLEAR, *(draw(st.sampled_from([(), *((Operation(("fence.proxy.async;",)),),) * 3]))), FULL)
    style = Style(KINDS, warps=(5,), windows=WINDOWS, issuers=(0, 128), clear=clear)
    return _Maker(draw, style).program()
