"""Register hazards of wgmma in the text: small functions with and without each defect, compilers' output, and mutants of that."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

import corpus
import pytest
from planted import plant

from consan.instrument.control_flow import graph_of
from consan.instrument.control_flow.splitting import repeated_guards
from consan.instrument.hazards import wgmma_state
from consan.instrument.hazards.registers import find_register_hazards
from consan.instrument.ptx import parse
from consan.instrument.sites import StaticFinding
from consan.reports.decoding.static import static_findings
from consan.reports.verdict.conclusion import assemble
from consan.toolchain.assemble import _tools, assemble as assemble_text

SHAPE = "m64n8k16"
FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
HEADER = ".version 8.0\n.target sm_90a{}\n.address_size 64\n"
REGISTERS = ".reg .pred %p<8>; .reg .f32 %f<32>; .reg .b32 %r<32>; .reg .b64 %d<8>; .reg .b32 %z1;"


# Registers of 32 bits may hold accumulators and tf32 fragments alike.
TO_WORDS = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r0,%r1,%r2,%r3}, %d0, %d1, %p7, 1, 1;"
FROM_WORDS = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %d1, %p7, 1, 1;"
OTHER_SHAPE = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, %d0, %d1, %p7, 1, 1;"


def wait(leave: int = 0) -> str:
    return f"wgmma.wait_group.sync.aligned {leave};"


def mma(accumulator: int = 0, a: int | None = None, *, guard: str = "", scale: str = "%p7") -> str:
    """D in %f[accumulator..+3]; A in %r[a..+3], or from shared memory."""
    d = ",".join(f"%f{accumulator + i}" for i in range(4))
    if a is None:
        return f"{guard}wgmma.mma_async.sync.aligned.{SHAPE}.f32.f16.f16 {{{d}}}, %d0, %d1, {scale}, 1, 1, 0, 0;"
    fragment = ",".join(f"%r{a + i}" for i in range(4))
    return f"{guard}wgmma.mma_async.sync.aligned.{SHAPE}.f32.f16.f16 {{{d}}}, {{{fragment}}}, %d1, {scale}, 1, 1, 0;"


def use(register: str) -> str:
    return f"st.global.f32 [%d2], {register};"


def clear(*registers: str) -> str:
    return " ".join(f"mov.f32 {register}, 0f00000000;" for register in registers)


def module(*lines: str, kind: str = ".visible .entry k()", more: str = "", target: str = "") -> str:
    return HEADER.format(target) + more + f"{kind}\n{{\n{REGISTERS}\n" + "\n".join(lines) + "\nret;\n}\n"


def hazards(*lines: str, **options: str) -> list[StaticFinding]:
    return list(find_register_hazards(parse(module(*lines, **options))))


def summary(*lines: str, **options: str) -> list[str]:
    return [f"{found.reason} {found.hazard} {' '.join(found.registers)}" for found in hazards(*lines, **options)]


@dataclass(frozen=True)
class Twin:
    """A defect and what is found, next to the same code without it."""

    name: str
    racy: tuple[str, ...]
    found: list[str]
    fixed: tuple[str, ...]


LOOP = ("TOP:", "add.u32 %r20, %r20, 1;", "setp.lt.u32 %p1, %r20, 9;")
AGAIN = "@%p1 bra TOP;"

TWINS = [
    Twin(
        "read before the wait",
        (FENCE, mma(), COMMIT, use("%f2"), wait()),
        ["touched-before-wait RAW %f2"],
        (FENCE, mma(), COMMIT, wait(), use("%f2")),
    ),
    Twin(
        "written before the wait",
        (FENCE, mma(), COMMIT, clear("%f1"), wait()),
        ["touched-before-wait WAW %f1"],
        (FENCE, mma(), COMMIT, wait(), clear("%f1")),
    ),
    Twin(
        "A registers reused before the wait",
        (FENCE, mma(0, 4), COMMIT, "ld.shared.v2.b32 {%r5, %r6}, [%r21];", wait()),
        ["touched-before-wait WAR %r5 %r6"],
        (FENCE, mma(0, 4), COMMIT, wait(), "ld.shared.v2.b32 {%r5, %r6}, [%r21];"),
    ),
    Twin(
        "a copy of an accumulator is a read",
        (FENCE, mma(), COMMIT, "mov.b32 %f30, %f0;", wait(), use("%f30")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, wait(), "mov.b32 %f30, %f0;", use("%f30")),
    ),
    Twin(
        "used as an address",
        (FENCE, mma(0, 4), COMMIT, "add.u32 %r4, %r4, 1;", wait(), "ld.shared.u32 %r9, [%r4];"),
        ["touched-before-wait WAR %r4"],
        (FENCE, mma(0, 4), COMMIT, "ld.shared.u32 %r9, [%r4];", wait()),
    ),
    Twin(
        "one group too many is left pending",
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, wait(1), use("%f4"), wait()),
        ["touched-before-wait RAW %f4"],
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, wait(1), use("%f0"), wait(), use("%f4")),
    ),
    Twin(
        "three groups, two left pending",
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, mma(8), COMMIT, wait(2), use("%f0"), use("%f4")),
        ["touched-before-wait RAW %f4"],
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, mma(8), COMMIT, wait(1), use("%f0"), use("%f4")),
    ),
    Twin(
        "an empty group counts",
        (FENCE, mma(), COMMIT, wait(1), use("%f0")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, COMMIT, wait(1), use("%f0")),
    ),
    Twin(
        "waited before it was committed",
        (FENCE, mma(), wait(), COMMIT, use("%f0")),
        ["not-committed RAW %f0"],
        (FENCE, mma(), COMMIT, wait(), use("%f0")),
    ),
    Twin(
        "never committed",
        (FENCE, mma(0), COMMIT, mma(4), wait(), use("%f0"), use("%f4")),
        ["not-committed RAW %f4"],
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, wait(), use("%f0"), use("%f4")),
    ),
    Twin(
        "two matmuls, each with its consumer, one flush for both",
        (FENCE, mma(0), COMMIT, wait(), use("%f0"), FENCE, mma(4), COMMIT, use("%f4")),
        ["touched-before-wait RAW %f4"],
        (FENCE, mma(0), COMMIT, wait(), use("%f0"), FENCE, mma(4), COMMIT, wait(), use("%f4")),
    ),
    Twin(
        "one wait for two matmuls, the second wait is redundant",
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, use("%f0"), wait(), use("%f4"), wait()),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(0), COMMIT, mma(4), COMMIT, wait(), use("%f0"), use("%f4"), wait()),
    ),
    Twin(
        "an accumulator in flight is the A operand of the next one",
        (FENCE, TO_WORDS, COMMIT, FENCE, FROM_WORDS),
        ["touched-before-wait RAW %r0 %r1 %r2 %r3"],
        (FENCE, TO_WORDS, COMMIT, wait(), FENCE, FROM_WORDS),
    ),
    Twin("the first one without a fence", (mma(), COMMIT, wait()), ["no-fence RAW %f0 %f1 %f2 %f3"], (FENCE, mma(), COMMIT, wait())),
    Twin(
        "accumulators written after the fence",
        (FENCE, clear("%f0", "%f3"), mma(), COMMIT, wait()),
        ["written-after-fence RAW %f0 %f3"],
        (clear("%f0", "%f3"), FENCE, mma(), COMMIT, wait()),
    ),
    Twin(
        "A registers written after the fence",
        (FENCE, "mov.b32 %r7, 3;", mma(0, 4), COMMIT, wait()),
        ["written-after-fence RAW %r7"],
        ("mov.b32 %r7, 3;", FENCE, mma(0, 4), COMMIT, wait()),
    ),
    Twin(
        "accumulators written although the value is discarded",
        (FENCE, clear("%f0"), mma(scale="0"), COMMIT, wait()),
        ["written-after-fence WAW %f0"],
        (clear("%f0"), FENCE, mma(scale="0"), COMMIT, wait()),
    ),
    Twin(
        "accumulators read, then accumulated into again",
        (FENCE, mma(), COMMIT, wait(), use("%f0"), mma(), COMMIT, wait()),
        ["no-fence WAR %f0"],
        (FENCE, mma(), COMMIT, wait(), use("%f0"), FENCE, mma(), COMMIT, wait()),
    ),
    Twin(
        "another shape accumulates",
        (FENCE, mma(), OTHER_SHAPE, COMMIT, wait()),
        ["no-fence RAW %f0 %f1 %f2 %f3"],
        (FENCE, mma(), FENCE, OTHER_SHAPE, COMMIT, wait()),
    ),
    Twin(
        "A registers rewritten in a loop while in flight",
        (FENCE, *LOOP, "mov.b32 %r4, %r20;", FENCE, mma(0, 4), COMMIT, wait(1), AGAIN, wait(), use("%f0")),
        ["touched-before-wait WAR %r4"],
        (FENCE, *LOOP, "mov.b32 %r4, %r20;", FENCE, mma(0, 4), COMMIT, wait(0), AGAIN, wait(), use("%f0")),
    ),
    Twin(
        "the last iteration's group is not waited for",
        (*LOOP, FENCE, mma(), COMMIT, wait(1), AGAIN, use("%f0")),
        ["touched-before-wait RAW %f0"],
        (*LOOP, FENCE, mma(), COMMIT, wait(1), AGAIN, wait(), use("%f0")),
    ),
    Twin(
        "waited for on one branch only",
        (FENCE, mma(), COMMIT, "@%p1 bra OVER;", wait(), "OVER:", use("%f0")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "@%p1 bra OVER;", wait(), "OVER:", wait(), use("%f0")),
    ),
    Twin(
        "committed twice on one branch only",
        (FENCE, mma(), COMMIT, "@%p1 bra OVER;", COMMIT, "OVER:", wait(1), use("%f0")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "@%p1 bra OVER;", COMMIT, "OVER:", wait(0), use("%f0")),
    ),
    Twin(
        "fenced on one branch only",
        ("@%p1 bra OVER;", FENCE, "OVER:", mma(), COMMIT, wait()),
        ["no-fence RAW %f0 %f1 %f2 %f3"],
        ("@%p1 bra OVER;", "OVER:", FENCE, mma(), COMMIT, wait()),
    ),
    Twin(
        "a table of targets",
        (FENCE, mma(), COMMIT, "TABLE: .branchtargets A, B;", "brx.idx %r1, TABLE;", "A:", wait(), "ret;", "B:", use("%f0")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "TABLE: .branchtargets A, B;", "brx.idx %r1, TABLE;", "A:", use("%r1"), "ret;", "B:", wait(), use("%f0")),
    ),
    Twin(
        "a guarded wait, a use that is not guarded",
        (FENCE, mma(), COMMIT, "@%p1 " + wait(), use("%f0")),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "@%p1 " + wait(), "@%p1 " + use("%f0")),
    ),
    Twin(
        "the guard changes between the wait and the use",
        (FENCE, mma(), COMMIT, "@%p1 " + wait(), "setp.eq.u32 %p1, %r1, 0;", "@%p1 " + use("%f0")),
        ["touched-before-wait RAW %f0"],
        ("setp.eq.u32 %p1, %r1, 0;", FENCE, mma(), COMMIT, "@%p1 " + wait(), "@%p1 " + use("%f0")),
    ),
    Twin(
        "branches on one predicate",
        (FENCE, mma(), COMMIT, "@%p1 bra X;", wait(), "X:", "@!%p1 bra Y;", use("%f0"), "Y:"),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "@%p1 bra X;", wait(), "X:", "@%p1 bra Y;", use("%f0"), "Y:"),
    ),
    Twin(
        "everything under one guard",
        (FENCE, mma(guard="@%p1 "), "@%p1 " + COMMIT, "@!%p1 " + wait(), "@%p1 " + use("%f0")),
        ["touched-before-wait RAW %f0"],
        ("@%p1 " + FENCE, mma(guard="@%p1 "), "@%p1 " + COMMIT, "@%p1 " + wait(), "@%p1 " + use("%f0")),
    ),
    Twin(
        "two predicates, one for each of two matmuls",
        (FENCE, mma(0), mma(4), COMMIT, "@%p1 " + wait(), "@%p1 " + use("%f0"), "@%p2 " + wait(), "@!%p2 " + use("%f4")),
        ["touched-before-wait RAW %f4"],
        (FENCE, mma(0), mma(4), COMMIT, "@%p1 " + wait(), "@%p1 " + use("%f0"), "@%p2 " + wait(), "@%p2 " + use("%f4")),
    ),
    Twin(
        "names of an inner scope",
        (FENCE, mma(), COMMIT, "{ .reg .f32 %f9; mov.f32 %f9, %f0; }", wait()),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, "{ .reg .f32 %f0; mov.f32 %f0, 0f00000000; }", wait()),
    ),
    Twin(
        "a store of the call's argument",
        (FENCE, mma(), COMMIT, "{ .param .b32 a; st.param.f32 [a], %f0; call.uni f, (a); }", wait()),
        ["touched-before-wait RAW %f0"],
        (FENCE, mma(), COMMIT, wait(), "{ .param .b32 a; st.param.f32 [a], %f0; call.uni f, (a); }"),
    ),
]
DECLARED = {"more": ".extern .func f(.param .b32 a);\n.extern .func g();\n"}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_the_defect_is_found(twin: Twin) -> None:
    assert summary(*twin.racy, **DECLARED) == twin.found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_the_same_without_the_defect_is_clean(twin: Twin) -> None:
    assert summary(*twin.fixed, **DECLARED) == []


CLEAN = {
    "chained accumulators": (FENCE, mma(), mma(), COMMIT, mma(), COMMIT, wait()),
    "A read by two": (FENCE, mma(0, 4), mma(4, 4), COMMIT, wait(), use("%f0")),
    "A read while it is read": (FENCE, mma(0, 4), COMMIT, use("%r4"), wait()),
    "A read before it is read": (FENCE, use("%r4"), mma(0, 4), COMMIT, wait()),
    "A becomes accumulator after a fence": (FENCE, FROM_WORDS, FENCE, TO_WORDS, COMMIT, wait()),
    "a loop that leaves one pending": (clear("%f0", "%f1"), *LOOP, FENCE, mma(), COMMIT, wait(1), AGAIN, wait(), use("%f0")),
    "accumulators never used": (FENCE, mma(), COMMIT),
    "registers of others": (FENCE, mma(), COMMIT, use("%f9"), clear("%f10"), wait()),
    "a call may wait": (FENCE, mma(), COMMIT, "call.uni g, ();", use("%f0")),
    "a call may fence": ("call.uni g, ();", mma(), COMMIT, wait()),
    "a guarded call may wait": (FENCE, mma(), COMMIT, "@%p1 call.uni g, ();", use("%f0")),
    "unreachable": (FENCE, mma(), COMMIT, "bra.uni END;", use("%f0"), "END:"),
    "after an exit": (FENCE, mma(), COMMIT, "@%p1 bra X;", "exit;", use("%f0"), "X:", wait(), use("%f0")),
    "no wgmma": (clear("%f0"), use("%f0")),
    "nothing but waits": (FENCE, COMMIT, wait(), use("%f0")),
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_legal_is_silent(name: str) -> None:
    assert summary(*CLEAN[name], **DECLARED) == []


def test_each_group_left_pending_is_told_apart() -> None:
    """Eight groups, then wait_group N: what is older than the N last ones may be used, the others not."""
    groups = [line for group in range(8) for line in (mma(4 * group if group < 7 else 28), COMMIT)]
    for leave in range(8):
        used = [use(f"%f{4 * group}") for group in range(8)]
        found = hazards(FENCE, *groups, wait(leave), *used)
        assert [each.registers for each in found] == [(f"%f{4 * group}",) for group in range(8 - leave, 8)]
        assert [each.leave for each in found] == [7 - group for group in range(8 - leave, 8)]


def test_one_finding_for_all_that_follows_on_a_path() -> None:
    found = hazards(FENCE, mma(), COMMIT, *(use(f"%f{i}") for i in range(4)))
    assert [each.registers for each in found] == [("%f0",)]
    branches = hazards(FENCE, mma(), COMMIT, "@%p1 bra X;", use("%f1"), "ret;", "X:", use("%f2"))
    assert [each.registers for each in branches] == [("%f1",), ("%f2",)]


def test_an_instruction_without_a_row_touches_its_operands() -> None:
    assert summary(FENCE, mma(), COMMIT, "frobnicate.b32 %r30, %f0;") == ["touched-before-wait RAW %f0"]
    assert summary(FENCE, mma(), COMMIT, "frobnicate.b32 %f1, %r30;") == ["touched-before-wait WAW %f1"]


def test_debug_builds_are_left_out() -> None:
    assert hazards(FENCE, mma(), COMMIT, use("%f0"))
    assert not hazards(FENCE, mma(), COMMIT, use("%f0"), target=", debug")


FUNCTION = ".func inner()\n{{\n" + REGISTERS + "\n{}\nret;\n}}\n.func other() {{ ret; }}\n"


def test_functions_begin_fenced_and_name_the_kernels_that_reach_them() -> None:
    body = FUNCTION.format("\n".join([mma(), COMMIT, use("%f0")]))
    text = module("call.uni inner, ();", more=body) + ".visible .entry alone() { ret; }\n"
    found = find_register_hazards(parse(text))
    assert [(each.function, each.kernels, each.reason) for each in found] == [("inner", ("k",), "touched-before-wait")]
    indirect = text.replace("{ ret; }\n", "{ .reg .b64 %t; p: .callprototype _ (); call (), %t, (), p; ret; }\n")
    assert [each.kernels for each in find_register_hazards(parse(indirect))] == [("k", "alone")]


def test_the_graph_has_every_edge() -> None:
    text = module("@%p1 bra A;", "bra.uni B;", "A: add.u32 %r1, %r1, 1;", "@!%p1 exit;", "B: @%p2 bra A;", "trap;")
    graph = graph_of(parse(text).functions[0])
    assert [node.successors for node in graph.nodes if node.steps] == [(2, 1), (3,), (3,), (2, 4), (), ()]
    assert [name for _, name in repeated_guards(graph)] == ["%p1"]


def test_unrolled_loops_take_linear_work() -> None:
    def lines(count: int) -> list[str]:
        return [FENCE, *LOOP, *(line for i in range(count) for line in (mma(4 * (i % 8)), COMMIT, wait(1))), AGAIN, wait(), use("%f0")]

    def work(count: int) -> int:
        """The source lines that the search executes: a measure that other processes do not change."""
        parsed, executed = parse(module(*lines(count))), 0
        list(parsed.functions[0].instructions())

        def trace(_frame: FrameType, event: str, _arg: object) -> Callable[..., object]:
            nonlocal executed
            executed += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert find_register_hazards(parsed) == ()
        finally:
            sys.settrace(before)
        return executed

    assert 2 * work(100) < work(400) < 5 * work(100)


# --- the report ------------------------------------------------------------------------------------------------------------------


FILE = '.file 1 "kernel.cu"\n'


def findings(*lines: str) -> list[tuple[str, str, str]]:
    text = module(*lines, more=FILE)
    return [(each.message, each.missing, each.fix) for each in static_findings(find_register_hazards(parse(text)))]


def test_the_report_names_registers_places_and_the_wait() -> None:
    ((message, missing, fix),) = findings(".loc 1 10 3", FENCE, mma(), COMMIT, mma(4), COMMIT, ".loc 1 12 5", use("%f0"))
    assert message.startswith("the read of an accumulator (PTX %f0) at kernel.cu:12 can come before the wgmma.mma_async at kernel.cu:10")
    assert missing == "a wait for the wgmma.mma_async of kernel.cu:10 before this read: wgmma.wait_group"
    assert "1 (CUTLASS warpgroup_wait<1>()) after the wgmma.commit_group.sync.aligned and before kernel.cu:12" in fix


def test_the_report_names_a_missing_commit_and_a_missing_fence() -> None:
    ((message, missing, fix),) = findings(FENCE, ".loc 1 10 3", mma(), wait(), ".loc 1 12 5", use("%f0"))
    assert "was waited for before it was committed" in message
    assert missing.startswith("wgmma.commit_group.sync.aligned between")
    assert "after kernel.cu:10 and before the wait" in fix
    everything = clear("%f0", "%f1", "%f2", "%f3")
    ((message, missing, fix),) = findings(FENCE, ".loc 1 10 3", everything, "mov.b32 %r4, 1;", ".loc 1 12 5", mma(0, 4), COMMIT)
    assert message.startswith("in the compiled code, the write of accumulators (PTX %f0, %f1, %f2, %f3 and 1 more) for the wgmma.mma_async")
    assert "pin the accumulators between the statement that sets them and the wgmma.fence at PTX line" in fix
    rewritten = (FENCE, mma(), COMMIT, wait(), ".loc 1 10 3", everything, ".loc 1 12 5", mma(), COMMIT)
    ((message, missing, fix),) = findings(*rewritten)
    assert message.startswith("the wgmma.mma_async at kernel.cu:12 uses accumulators (PTX %f0, %f1, %f2, %f3) with no wgmma.fence")
    assert "after kernel.cu:10 and before kernel.cu:12" in fix
    ((message, _, fix),) = findings(".loc 1 12 5", mma(), COMMIT)
    assert "can be the first one" in message
    assert fix.endswith("before kernel.cu:12")


@pytest.mark.parametrize(
    ("after", "late"),
    [
        ((wait(),), True),
        ((wait(1),), False),  # leaves the group in flight
        (("bra NEXT;", "NEXT:", wait()), True),
        (("@%p1 bra NEXT;", "ret;", "NEXT:", wait()), False),  # another path has no wait
        (("@%p1 bra NEXT;", wait(), "NEXT:", wait()), False),  # one of two
        (("@%p1 " + wait(),), False),
        ((COMMIT, wait()), False),  # the commit may be the one that is missing
    ],
)
def test_a_wait_that_comes_too_late_is_to_be_moved(after: tuple[str, ...], late: bool) -> None:
    text = module(FENCE, ".loc 1 10 3", mma(), COMMIT, ".loc 1 12 5", use("%f0"), ".loc 1 14 5", *after, more=FILE)
    (finding,) = static_findings(find_register_hazards(parse(text)))
    assert (len(finding.accesses) == 3) is late
    assert (finding.fix == "move the wgmma.wait_group at kernel.cu:14 before kernel.cu:12") is late


@pytest.mark.parametrize(
    ("lines", "short"),
    [
        ((mma(), COMMIT, ".loc 1 11 5", wait(1)), True),
        ((mma(), COMMIT, ".loc 1 11 5", wait(1), "@%p1 bra NEXT;", "mov.b32 %z1, 0;", "NEXT:"), True),
        ((mma(), COMMIT, "@%p1 bra NEXT;", ".loc 1 11 5", wait(1), "NEXT:"), False),  # a path avoids it
        ((".loc 1 11 5", wait(1), mma(), COMMIT), False),  # before the mma_async
        ((mma(), COMMIT, ".loc 1 11 5", wait(1), mma(4), COMMIT), False),  # a group was committed since
    ],
)
def test_a_wait_that_leaves_too_much_in_flight_is_to_be_changed(lines: tuple[str, ...], short: bool) -> None:
    text = module(FENCE, ".loc 1 10 3", *lines, ".loc 1 12 5", use("%f0"), more=FILE)
    (finding,) = static_findings(find_register_hazards(parse(text)))
    assert ("the wgmma.wait_group 1 at kernel.cu:11 leaves it in flight" in finding.message) is short
    assert (finding.fix == "wait with wgmma.wait_group.sync.aligned 0 (CUTLASS warpgroup_wait<0>()) at kernel.cu:11 instead of 1") is short


def test_the_fence_that_the_compiler_has_moved_the_writes_below_is_named() -> None:
    lines = (".loc 1 9 5", FENCE, ".loc 1 10 3", clear("%f0", "%f1", "%f2", "%f3"), ".loc 1 12 5", mma(), COMMIT)
    (finding,) = static_findings(find_register_hazards(parse(module(*lines, more=FILE))))
    assert [access.line for access in finding.accesses] == [10, 12, 9]
    for words in (finding.message, finding.missing, finding.fix):
        assert "the wgmma.fence at kernel.cu:9" in words


def test_the_report_has_two_accesses_and_the_asynchronous_side() -> None:
    text = module(FENCE, ".loc 1 10 3", mma(), COMMIT, ".loc 1 12 5", "@%p1 " + use("%f0"), more=FILE)
    hazard = find_register_hazards(parse(text))
    (finding,) = static_findings(hazard)
    first, second = finding.accesses
    assert (finding.kind, finding.kernel, finding.hazard, finding.severity) == ("register-hazard", "k", "RAW", "error")
    assert (first.role, first.proxy, first.file, first.line, first.column) == ("wgmma accumulator", "async", "kernel.cu", 10, 3)
    assert first.op.startswith("wgmma.mma_async")
    assert first.asynchronous is not None
    assert first.asynchronous.kind == "wgmma"
    assert (second.role, second.op, second.line, second.asynchronous) == ("read", "st.global.f32", 12, None)
    assert second.ptx.startswith("@%p1 st.global.f32")
    assert static_findings(hazard, kernels=["other"]) == []
    report = assemble(device="cpu", findings=[finding])
    assert report.verdict == "violations"
    assert "kernel.cu:12" in str(report)
    assert '"register-hazard"' in report.to_json()


SUNK = "written-after-fence"
AFTER_FENCE = {
    "all registers": ((FENCE, clear("%f0", "%f1", "%f2", "%f3"), mma()), {SUNK}),
    "scaled in place": ((FENCE, "mul.f32 %f0, %f0, %f20;", mma()), {SUNK}),
    "read, and written by another instruction": ((FENCE, "mul.f32 %f20, %f0, %f21;", "mov.f32 %f0, %f20;", mma()), {SUNK}),
    "loaded": ((FENCE, "ld.global.f32 %f0, [%d2];", mma()), {SUNK}),
    "the second accumulator of a batch": ((FENCE, mma(0), clear("%f4"), mma(4)), {SUNK}),
    "in every iteration": ((*LOOP, FENCE, clear("%f0"), mma(), COMMIT, wait(), AGAIN), {SUNK}),
    "no fence at all": ((clear("%f0"), mma()), {"no-fence"}),
    "read only": ((FENCE, use("%f0"), mma()), {"no-fence"}),
    "under a guard": ((FENCE, "@%p1 mov.f32 %f0, 0f00000000;", mma()), {"no-fence"}),
    "before a branch": ((FENCE, clear("%f0"), "@%p1 bra X;", "X:", mma()), {SUNK}),
    "before a wait, as in CUTLASS's persistent GEMM": ((FENCE, clear("%f0", "%f1"), *LOOP, AGAIN, mma(), COMMIT, wait()), {SUNK}),
    "on one branch": ((FENCE, "@%p1 bra X;", clear("%f0"), "X:", mma()), {SUNK}),
    "on one branch, another read": ((FENCE, "@%p1 bra X;", clear("%f0"), "bra Y;", "X:", use("%f1"), "Y:", mma()), {"no-fence"}),
    "fenced before or after, by the branch": ((clear("%f0"), "@%p1 bra X;", FENCE, clear("%f0"), "X:", mma()), {"no-fence"}),
    "behind the group of another accumulator": ((FENCE, mma(4), COMMIT, clear("%f0"), mma(0)), {SUNK}),
    "copied behind another group": ((clear("%f0"), FENCE, mma(4), COMMIT, "mov.f32 %f1, %f0;", mma(0)), {SUNK}),
    "computed behind another group": ((FENCE, mma(4), COMMIT, "add.f32 %f0, %f20, %f21;", mma(0)), {"no-fence"}),
    "loaded behind another group": ((FENCE, mma(4), COMMIT, "ld.global.f32 %f0, [%d2];", mma(0)), {"no-fence"}),
    "committed on one branch": ((FENCE, mma(4), "@%p1 bra X;", COMMIT, "X:", "add.f32 %f0, %f20, %f21;", mma(0)), {"no-fence"}),
    "in the next batch": ((FENCE, mma(4), COMMIT, wait(), clear("%f0"), mma(0)), {"no-fence"}),
    "behind a wait that leaves a group": ((FENCE, mma(4), COMMIT, mma(8), COMMIT, wait(1), clear("%f0"), mma(0)), {"no-fence"}),
    "in the next iteration": ((FENCE, *LOOP, clear("%f0"), mma(), COMMIT, wait(), AGAIN), {"no-fence"}),
    "fenced on one branch": (("@%p1 bra X;", FENCE, "X:", clear("%f0"), mma()), {"no-fence"}),
    "after a call": ((FENCE, "call.uni g, ();", clear("%f0"), mma()), {"no-fence"}),
    "while it is in flight": ((FENCE, mma(), clear("%f0"), mma()), {"touched-before-wait", "no-fence"}),
}


@pytest.mark.parametrize("name", AFTER_FENCE)
def test_plain_writes_below_the_fence_are_a_warning_in_a_straight_line(name: str) -> None:
    lines, reasons = AFTER_FENCE[name]
    found = hazards(*lines, COMMIT, wait(), **DECLARED)
    assert {each.reason for each in found} == reasons
    severities = {finding.severity for finding in static_findings(found)}
    assert severities == ({"warning"} if reasons == {SUNK} else {"error"})


FAULTS_AFTER_FENCE = {
    "behind the group of another accumulator": ("not state.committed or _copies(event)", "not state.committed"),
    "copied behind another group": ('how if how == "copy" else "write"', '"write"'),
    "computed behind another group": ("not state.committed or _copies(event)", "True"),
    "loaded behind another group": ("return copies(event.instruction)", "return True"),
    "committed on one branch": (
        "self.committed = self.committed or other.committed",
        "self.committed = self.committed and other.committed",
    ),
    "behind a wait that leaves a group": ("state.used = None  # the batch is over", "pass  # the batch is over"),
}


@pytest.mark.parametrize("name", FAULTS_AFTER_FENCE)
def test_a_fault_in_the_state_of_a_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, wgmma_state, *FAULTS_AFTER_FENCE[name])
    with pytest.raises(AssertionError):
        test_plain_writes_below_the_fence_are_a_warning_in_a_straight_line(name)


# --- what the assembler says -----------------------------------------------------------------------------------------------------

LOADED = " ".join(f"ld.global.f32 %f{i}, [%d2+{4 * i}]; ld.global.b32 %r{i}, [%d2+{4 * i}];" for i in range(16))
STORED = " ".join(f"st.global.f32 [%d2+{4 * i}], %f{i};" for i in range(16))
PROLOGUE = f"ld.global.b64 %d2, [%d2]; mov.b64 %d0, %d2; mov.b64 %d1, %d2; mov.b32 %r20, 0; setp.ne.b64 %p7, %d2, 0; {LOADED}"
IN_BATCHES = (FENCE, mma(0), COMMIT, mma(4), COMMIT)
ASSEMBLED = {
    "behind a wait that leaves it": ((*IN_BATCHES, wait(1), use("%f4"), wait()), {"C7514"}, "C7514"),
    "A in registers": ((FENCE, mma(0, 8), COMMIT, mma(4, 8), COMMIT, wait(1), use("%f4"), wait()), {"C7514"}, "C7514"),
    "the only group": ((FENCE, mma(), COMMIT, wait(1), use("%f0"), wait()), {"C7514"}, "C7514"),
    "two of three groups": ((*IN_BATCHES, mma(8), COMMIT, wait(2), use("%f4"), wait()), {"C7514"}, "C7514"),
    "a copy": ((*IN_BATCHES, wait(1), "add.f32 %f30, %f4, %f4;", use("%f30"), wait()), {"C7514"}, "C7514"),
    "in a loop": ((*LOOP, *IN_BATCHES, wait(1), use("%f4"), wait(), AGAIN), {"C7514"}, "C7514"),
    "no wait before it": ((FENCE, mma(), COMMIT, use("%f0"), wait()), {"C7517"}, ""),
    "overwritten": ((FENCE, mma(), COMMIT, clear("%f1"), wait()), {"C7515"}, ""),
    "A overwritten": ((FENCE, mma(0, 8), COMMIT, "mov.b32 %r8, 3;", wait(), "st.global.b32 [%d2], %r8;"), set(), ""),
    "written after the fence": ((FENCE, clear("%f0"), mma(), COMMIT, wait()), set(), ""),
    "no fence": ((mma(), COMMIT, wait()), set(), ""),
    "correct": ((FENCE, mma(), COMMIT, wait(), use("%f0")), set(), ""),
}


@functools.lru_cache(maxsize=1)
def assembler() -> str:
    """The name of an assembler that is here; a visible skip where there is none."""
    tools = _tools()
    if not tools:
        pytest.skip("neither nvJitLink nor ptxas is here")
    return tools[0]


@pytest.mark.parametrize("name", ASSEMBLED)
def test_what_is_said_of_the_assembler_is_what_it_does(name: str) -> None:
    """C7519 depends on the assembler: ptxas 13.0 says that it puts a fence in, nvJitLink 13.5 does not."""
    lines, codes, predicted = ASSEMBLED[name]
    text = module(PROLOGUE, *lines, STORED)
    said = set(re.findall(r"\((C75\d\d)\)", assemble_text(text, "sm_90a").log)) if assembler() else set()
    assert said - {"C7519"} == codes
    found = static_findings(find_register_hazards(parse(text)))
    assert [f"({predicted})" in finding.message for finding in found] == [bool(predicted)] * len(found)
    assert bool(found) is (name != "correct")
    assert all("ptxas will serialise the wgmma pipeline here" in finding.message for finding in found if predicted)


# --- compilers' output -----------------------------------------------------------------------------------------------------------

FOLDERS = ("triton_hopper/", "gluon_hopper/matmul", "cutlass/")
NAMES = ("triton/matmul/sm_90a", "nvcc/cutlass_sm90/sm_90a", "nvrtc/cutlass_sm90/sm_90a", "nvrtc/tma_gemm/sm_90a")
REAL = [entry.name for entry in corpus.entries() if entry.name.startswith(FOLDERS) or entry.name in NAMES]


@functools.lru_cache(maxsize=2)
def real(name: str) -> str:
    """PTX of a real kernel; a visible skip where it cannot be made here."""
    entry = corpus.get(name)
    if entry.skip:
        pytest.skip(entry.skip)
    return entry.make()


@pytest.mark.parametrize("name", REAL)
def test_real_kernels_are_clean(name: str) -> None:
    parsed = parse(real(name), name)
    assert any(i.parts[:2] == ("wgmma", "mma_async") for function in parsed.functions for i in function.instructions())
    assert find_register_hazards(parsed) == ()


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """What was removed, or which count was raised, and the text without it."""
    for match in re.finditer(r"wgmma\.(fence|commit_group|wait_group)\.sync\.aligned\s*(\d*);", text):
        name, count = match.groups()
        yield f"{name} {count}".strip(), text[: match.start()] + text[match.end() :]
        if count:
            raised = match[0].replace(f"{count};", f"{int(count) + 1};")
            yield f"{name} {count}+1", text[: match.start()] + raised + text[match.end() :]


# What may be removed without a hazard on registers, and why: a wait inside the main loop keeps shared memory from being refilled (R-G1,
# which shows when the kernel runs), while its accumulators are chained and waited for after the loop; a fence inside the main loop
# repeats the one before it, and accumulators of one shape need none; a wait after everything was waited for is redundant.
STAGE = ("wait_group 1", "wait_group 1+1")
SURVIVORS = {
    **dict.fromkeys((f"triton_hopper/matmul_{name}/sm_90a" for name in ("int8", "specialised", "persistent")), ()),
    **dict.fromkeys((f"triton_hopper/attention{name}/sm_90a" for name in ("", "_causal", "_tma", "_specialised")), ()),
    **dict.fromkeys((f"gluon_hopper/matmul_specialised{name}/sm_90a" for name in ("", "_8_warps")), ()),
    **dict.fromkeys((f"cutlass/{name}/sm_90a" for name in ("wgmma_tn", "wgmma_nt", "wgmma_tma_tn", "wgmma_tma_nt")), ()),
    "gluon_hopper/matmul_pipelined/sm_90a": ("wait_group 0", "wait_group 0+1"),
    "triton_hopper/matmul_persistent_tma/sm_90a": (*STAGE, "wait_group 0", "wait_group 0+1"),
    **dict.fromkeys((f"{compiler}/cutlass_sm90/sm_90a" for compiler in ("nvcc", "nvrtc")), ("fence", *STAGE)),
    **dict.fromkeys((name for name in REAL if name.startswith("cutlass/gemm")), ("fence", *STAGE)),
}


@pytest.mark.parametrize("name", REAL)
def test_mutants_of_real_kernels_are_found_or_explained(name: str) -> None:
    results = [(what, find_register_hazards(parse(text))) for what, text in mutants(real(name))]
    assert sorted(what for what, found in results if not found) == sorted(SURVIVORS.get(name, STAGE))
    reasons = {"fence": {"no-fence"}, "commit_group": {"not-committed"}}
    for what, found in results:
        assert {each.reason for each in found} <= reasons.get(what, {"touched-before-wait"})
        assert all(each.kernels for each in found)


@pytest.mark.parametrize("turns", [10, 20])
def test_an_epilogue_in_the_last_turn_is_judged_by_the_counters_of_the_loop(turns: int) -> None:
    """One counter begins anew after ten turns, another ends the loop. With 20 turns the epilogue is in its middle, too."""
    text = module(
        "mov.b32 %r8, 0; mov.b32 %r9, 0;", FENCE, "LOOP:", mma(), COMMIT, "setp.ne.b32 %p1, %r9, 9; @%p1 bra ON;", wait(), use("%f0"),
        "ON:", wait(1), "add.s32 %r10, %r9, 1; setp.eq.b32 %p2, %r10, 10; selp.b32 %r9, 0, %r10, %p2; add.s32 %r8, %r8, 1;",
        f"setp.ne.b32 %p3, %r8, {turns}; @%p3 bra LOOP;",
    )  # fmt: skip
    assert [each.reason for each in find_register_hazards(parse(text))] == ["no-fence"] * (turns == 20)
