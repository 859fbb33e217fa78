"""Which relaxed loads give data (R-MO1)."""

from __future__ import annotations

import pytest
from planted import plant

from consan.instrument.control_flow import writes
from consan.instrument.ptx import parse
from consan.instrument.record.analyses.data import compared, loads_of_data, retried

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [p];
mov.u64 %rd2, 64;
mov.f32 %f2, 0f00000000;
"""
LOAD, REAL = "ld.relaxed.gpu.global.u32 %r1, [%rd1];", "ld.volatile.global.f32 %f1, [%rd1];"
STORE, SUM = "st.global.u32 [%rd1+8], %r1;", "add.f32 %f2, %f2, %f1;"
STORED, SEVEN, DECIDES = (LOAD, STORE), "mov.u32 %r1, 7;", ("setp.eq.u32 %p2, %r1, 0;", "@%p2 ret;")
CASES = {
    "stored": ([LOAD, STORE], True),
    "added up and stored": (
        ["$again:", REAL, SUM, "add.u64 %rd2, %rd2, -4;", "setp.ne.u64 %p1, %rd2, 0;", "@%p1 bra $again;", "st.global.f32 [%rd1], %f2;"],
        True,
    ),
    "a sum of the warp": ([REAL, "shfl.sync.bfly.b32 %f3, %f1, 1, 31, -1;", "add.f32 %f3, %f3, %f1;", "st.global.f32 [%rd1], %f3;"], True),
    "a sum in shared memory": ([REAL, SUM, "st.shared.f32 [%rd2], %f2;"], True),
    "a sum that is handed on": ([REAL, SUM, "st.volatile.global.f32 [%rd1], %f2;"], True),
    "a flag in shared memory": ([LOAD, "st.shared.u32 [%rd2], %r1;"], False),
    "a flag that is handed on": ([LOAD, "st.relaxed.gpu.global.u32 [%rd1+8], %r1;"], False),
    "a poll": (["$again:", LOAD, "setp.eq.u32 %p1, %r1, 0;", "@%p1 bra $again;", STORE], False),
    "a comparison": ([LOAD, "setp.eq.u32 %p1, %r1, 0;", "@%p1 st.global.u32 [%rd1], %r1;"], False),
    "a minimum": ([LOAD, "min.u32 %r1, %r1, 7;", STORE], False),
    "a choice": ([LOAD, "setp.eq.u32 %p1, %r2, 0;", "selp.u32 %r3, %r1, 1, %p1;", "st.global.u32 [%rd1], %r3;"], False),
    "a mask": ([LOAD, "and.b32 %r1, %r1, 1;", STORE], False),
    "an address": ([LOAD, "cvt.u64.u32 %rd3, %r1;", "st.global.u32 [%rd3], 1;", STORE], False),
    "an atomic": ([LOAD, "red.global.max.u32 [%rd1], %r1;"], False),
    "a guard elsewhere": ([LOAD, "setp.eq.u32 %p1, %r1, 0;", STORE, "@%p1 ret;"], False),
    "local memory": ([LOAD, "st.local.u32 [%rd2], %r1;"], False),
    "an acquire": (["ld.acquire.gpu.global.u32 %r1, [%rd1];", STORE], False),
    "a weak load": (["ld.global.u32 %r1, [%rd1];", STORE], False),
    "a vector of which one element is stored": (["ld.volatile.global.v2.u32 {%r1, %r2}, [%rd1];", STORE], True),
    "a vector of which one element decides": (
        ["ld.volatile.global.v2.u32 {%r1, %r2}, [%rd1];", "setp.eq.u32 %p1, %r2, 0;", "@%p1 ret;", STORE],
        False,
    ),
    "an integer sum in shared memory": (
        ["ld.volatile.shared.u32 %r1, [%rd2];", "add.u32 %r3, %r1, %r2;", "st.volatile.shared.u32 [%rd2], %r3;"],
        True,
    ),
    "an index in shared memory": (
        ["ld.volatile.shared.u32 %r1, [%rd2];", "add.u32 %r3, %r1, 1;", "st.volatile.shared.u32 [%rd2], %r3;"],
        False,
    ),
    "nothing reads it": ([LOAD], False),
    "an earlier value of its register decides": (
        ["mov.u32 %r1, 7;", "setp.eq.u32 %p1, %r1, %r2;", "@%p1 bra $past;", LOAD, "$past:", STORE],
        True,
    ),
    "a later value of its register decides": ([LOAD, STORE, "mov.u32 %r1, %r2;", "setp.eq.u32 %p1, %r1, 0;", "@%p1 ret;"], True),
    "it comes round to a branch": (
        ["mov.u32 %r1, 7;", "$again:", "setp.eq.u32 %p1, %r1, %r2;", LOAD, "@%p1 bra $again;", STORE],
        False,
    ),
    "a write that may not happen comes between": (
        [LOAD, STORE, "setp.eq.u32 %p1, %r2, 0;", "@%p1 mov.u32 %r1, 7;", "setp.eq.u32 %p2, %r1, 0;", "@%p2 ret;"],
        False,
    ),
    "another value comes on the other branch": (["@%p1 bra $else;", *STORED, "bra $end;", "$else:", SEVEN, "$end:", *DECIDES], False),
    "another value comes on the branch before": (["@%p1 bra $else;", SEVEN, "bra $end;", "$else:", *STORED, "$end:", *DECIDES], False),
    "its copy decides": ([SEVEN, "@%p1 bra $past;", LOAD, "$past:", STORE, "mov.u32 %r1, %r1;", *DECIDES], False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_loads_give_data(name: str) -> None:
    lines, data = CASES[name]
    (function,) = parse(HEAD + "\n".join(lines) + "\nret;\n}\n").functions
    (load,) = (each.start for each in function.instructions() if each.opcode.startswith("ld.") and "param" not in each.opcode)
    assert (load in loads_of_data(function)) is data


FAULTS = (
    ("a write that may not happen comes between", "own | before.get(key, own) if step.guard else own", "own"),
    ("another value comes on the other branch", "writers | known.get(key, writers)", "writers"),
    ("another value comes on the branch before", "writers | known.get(key, writers)", "known.get(key, writers)"),
    ("a later value of its register decides", "own | before.get(key, own) if step.guard else own", "own | before.get(key, own)"),
    ("its copy decides", "goes[start, key] for key in written(instruction)", "0 for key in written(instruction)"),
    ("an earlier value of its register decides", "for maker in last[start].get(key, ()):", "for maker in ():"),
)


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_in_the_writes_of_a_register(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test_which_loads_give_data(name)
    plant(monkeypatch, writes, old, new)
    with pytest.raises(AssertionError):
        test_which_loads_give_data(name)


LOOK, OTHER = "ld.acquire.gpu.global.u32 %r2, [%rd2];", "ld.acquire.gpu.global.u32 %r2, [%rd1+64];"
BRACKETS = {
    "two looks at one word": ([LOOK, LOAD, STORE, LOOK], True),
    "looks at two words": ([LOOK, LOAD, STORE, OTHER], False),
    "a look before": ([LOOK, LOAD, STORE], False),
    "a look behind": ([LOAD, STORE, LOOK], False),
    "two looks before": ([LOOK, LOOK, LOAD, STORE], False),
    "a loop": (["again:", LOAD, STORE, LOOK, "setp.eq.u32 %p1, %r2, 0;", "@%p1 bra again;"], True),
    "looks in two blocks": ([LOOK, "setp.eq.u32 %p1, %r2, 0;", "@%p1 ret;", LOAD, STORE, LOOK], True),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_which_loads_may_be_thrown_away(name: str) -> None:
    lines, may_be = BRACKETS[name]
    (function,) = parse(HEAD + "\n".join(lines) + "\nret;\n}\n").functions
    loads = frozenset(each.start for each in function.instructions() if each.text.strip().startswith(LOAD[:-1]))
    assert loads
    assert (retried(function, loads) == loads) is may_be


AGAIN = "ld.relaxed.gpu.global.u32 %r3, [%rd3];"
COMPARED = {
    "two looks that are compared": ([LOOK, LOAD, STORE, LOOK.replace("%r2", "%r3"), "setp.ne.u32 %p1, %r2, %r3;", "@%p1 ret;"], True),
    "the second one by an address that is converted": (
        ["cvta.to.global.u64 %rd3, %rd2;", LOOK, LOAD, STORE, AGAIN, "setp.ne.u32 %p1, %r3, %r2;", "@%p1 ret;"],
        True,
    ),
    "two looks at two words": ([LOOK, LOAD, STORE, OTHER.replace("%r2", "%r3"), "setp.ne.u32 %p1, %r2, %r3;", "@%p1 ret;"], False),
    "each is compared with a number": ([LOOK, LOAD, STORE, LOOK.replace("%r2", "%r3"), "setp.ne.u32 %p1, %r3, 2;", "@%p1 ret;"], False),
    "one look, compared with what it gave before": (
        ["mov.u32 %r3, 0;", "again:", LOOK, LOAD, STORE, "setp.ne.u32 %p1, %r2, %r3;", "mov.u32 %r3, %r2;", "@%p1 bra again;"],
        False,
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_which_loads_stand_between_looks_that_are_compared(name: str) -> None:
    lines, between = COMPARED[name]
    (function,) = parse(HEAD + "\n".join(lines) + "\nret;\n}\n").functions
    loads = frozenset(each.start for each in function.instructions() if each.text.strip().startswith(LOAD[:-1]))
    assert loads
    assert compared(function) == (loads if between else frozenset())
