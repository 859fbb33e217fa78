"""Which places follow from an index in a table, and which from a number that all threads load from one place."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.instrument.record.analyses import looked_up

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 table, .param .u64 flags) {
.reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
ld.param.u64 %rd1, [table]; ld.param.u64 %rd2, [flags]; mov.u32 %r1, %ctaid.x;
"""
STORE = "mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd2, %rd5; st.volatile.global.u32 [%rd5], 1;"
OF_THREAD = "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r2, [%rd3];"
LOADED = "ld.global.u32 %r1, [%rd1];" + OF_THREAD
ROUNDS = f"mov.u64 %rd3, %rd1; L: ld.global.u32 %r2, [%rd3]; {STORE} add.s64 %rd3, %rd3, 4; setp.lt.u64 %p, %rd3, %rd1; @%p bra L;"
NO_TABLE = "ld.global.u32 %r2, [%rd1+8]; mul.lo.s32 %r2, %r2, %r1;"
WIDE = "mul.wide.u32 %rd3, %r1, 8; add.s64 %rd3, %rd1, %rd3; ld.global.u64 %rd4, [%rd3]; cvt.u32.u64 %r2, %rd4;"
CASES = {
    "of the thread": (OF_THREAD + STORE, 1),
    "by an index that is loaded": (LOADED + STORE, 1),
    "of a round": (ROUNDS, 1),
    "that all load from one place": (NO_TABLE + STORE, 0),
    "of eight bytes": (WIDE + STORE, 0),
}


def places(name: str) -> int:
    body, _ = CASES[name]
    return len(looked_up.looked_up(parse(f"{HEAD}{body}\nret;\n}}\n").functions[0]))


@pytest.mark.parametrize("name", CASES)
def test_places_that_a_table_names(name: str) -> None:
    assert places(name) == CASES[name][1]


def test_parameters_are_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked_up, "is_loaded", lambda _: True)
    assert places("that all load from one place") == 1
