"""Whether a write needs what lanes have exchanged of the values that they read."""

from __future__ import annotations

import pytest

from consan.instrument.between.exchanges import Exchanges
from consan.instrument.ptx import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .pred %p<9>;
    .reg .b32 %r<19>;
    .shared .align 4 .b32 s[64];
    mov.u32 %r1, %tid.x;
    mov.u32 %r9, -1;
"""
LOAD, STORE = "ld.shared.u32 %r2, [s];", "st.shared.u32 [s], {};"
VALUE = STORE.format("%r3")
BARRIER = "bar.warp.sync -1;"


def shuffle(source: str, target: str = "%r3", mask: str = "-1") -> str:
    return f"shfl.sync.bfly.b32 {target}, {source}, 1, 31, {mask};"


CASES = {
    "the value": ([LOAD, shuffle("%r2"), VALUE], True),
    "a mask in a register": ([LOAD, shuffle("%r2", mask="%r9"), VALUE], True),
    "arithmetic on both sides": ([LOAD, "add.u32 %r4, %r2, 1;", shuffle("%r4"), "add.u32 %r3, %r3, %r2;", VALUE], True),
    "redux": ([LOAD, "redux.sync.add.u32 %r3, %r2, -1;", VALUE], True),
    "match": ([LOAD, "match.any.sync.b32 %r3, %r2, -1;", VALUE], True),
    "the address": ([LOAD, shuffle("%r2"), "st.shared.u32 [%r3], %r1;"], True),
    "a guard": ([LOAD, "setp.eq.u32 %p1, %r2, 0;", "vote.sync.all.pred %p2, %p1, -1;", "@%p2 st.shared.u32 [s], %r1;"], True),
    "a branch": (
        [LOAD, "setp.eq.u32 %p1, %r2, 0;", "vote.sync.all.pred %p2, %p1, -1;", "@!%p2 bra $end;", STORE.format("%r1"), "$end:"], True
    ),
    "an exchange in a loop": (
        [LOAD, "mov.u32 %r5, 16;", "$again:", shuffle("%r2"), "add.u32 %r2, %r2, %r3;", "shr.u32 %r5, %r5, 1;", "setp.ne.u32 %p1, %r5, 0;",
         "@%p1 bra $again;", STORE.format("%r2")],
        True,
    ),
    "iterations with a barrier": (
        ["$again:", BARRIER, LOAD, shuffle("%r2"), VALUE, "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra $again;"], True
    ),
    "iterations without": (["$again:", LOAD, shuffle("%r2"), VALUE, "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra $again;"], False),
    "the write first, then the read": (
        ["$again:", BARRIER, STORE.format("%r3"), LOAD, shuffle("%r2"), "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra $again;"], False
    ),
    "another value given": ([LOAD, shuffle("%r1"), VALUE], False),
    "another value stored": ([LOAD, shuffle("%r2"), STORE.format("%r1")], False),
    "the value read, and not what was given": ([LOAD, shuffle("%r2"), STORE.format("%r2")], False),
    "the result overwritten": ([LOAD, shuffle("%r2"), "mov.u32 %r3, 1;", VALUE], False),
    "some lanes only": ([LOAD, shuffle("%r2", mask="65535"), VALUE], False),
    "some lanes only, by a guard": ([LOAD, "setp.eq.u32 %p1, %r1, 0;", "@%p1 " + shuffle("%r2"), VALUE], False),
    "a mask that nobody knows": ([LOAD, shuffle("%r2", mask="%r1"), VALUE], False),
    "activemask": ([LOAD, "activemask.b32 %r3;", VALUE], False),
    "a way around": ([LOAD, "setp.eq.u32 %p1, %r1, 0;", "mov.u32 %r3, 0;", "@%p1 bra $end;", shuffle("%r2"), "$end:", VALUE], False),
    "lanes that leave": ([LOAD, "setp.eq.u32 %p1, %r1, 0;", "@%p1 ret;", shuffle("%r2"), VALUE], False),
    "two arms of a branch": (
        ["setp.eq.u32 %p1, %r1, 0;", "@%p1 bra $other;", LOAD, "bra $end;", "$other:", VALUE, "$end:", shuffle("%r2")], False
    ),
    "the exchange of the round before": (
        ["$again:", BARRIER, LOAD, shuffle("%r6"), "mov.u32 %r6, %r2;", VALUE, "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra $again;"], False
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_order_by_an_exchange(name: str) -> None:
    lines, ordered = CASES[name]
    module = parse(HEAD + "\n".join(lines) + "\nret;\n}\n")
    (function,) = module.functions
    (load,) = (each.line for each in function.instructions() if each.opcode.startswith("ld.shared"))
    (store,) = (each.line for each in function.instructions() if each.opcode.startswith("st.shared"))
    assert Exchanges(function).order(load, store) is ordered
