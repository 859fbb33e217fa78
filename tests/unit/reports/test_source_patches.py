"""Verified fixes as lines of the CUDA source: what can be written so, and where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consan.reports.model import FixStep, VerifiedFix
from consan.reports.source.source_candidates import branches, moves
from consan.reports.source.source_patches import between, outside, patched

SOURCE = """__global__ void k() {
    if (threadIdx.x == 0)
        a[0] = 1;
    __syncthreads();  // all
    wait<1>();  // 1 in flight
    b = a[0]; c = 2;
    if (b) __syncthreads();
    asm volatile("cp.async.wait_group %0;" :: "n"(2));
    if (b) return;
    return;
    if (t == 0)
    WAIT(&full[k % 2], k / 2);
    expect(full, sizeof a);  // x
    bulk_wait_read<0>();  // all
    for (int i = 0; i < 5; i++) f(&a, i);
    if (f(0) && b) { g(); }
    ADD_AS("cta", &a, 1);
    __shared__ float s[16];
    WAIT(&full, k / 2), WAIT(&empty, k / 2);
    if (a[0] > 1) b = 2;  // x
    if (t == 0 && (b > 1)) a[0] = 2;  // x
}
"""


def _step(action: str, instruction: str, where: str = "at", line: int = 0, own: int = 0, spelling: str = "", ptx: int = 0) -> FixStep:
    return FixStep(action, instruction, where, "", "k.cu", line or own, ptx, spelling, own)


def _changed(*steps: FixStep) -> list[str]:
    """The lines that are new, with their numbers."""
    text = patched(SOURCE, [VerifiedFix(steps)], "k.cu")
    before = SOURCE.splitlines()
    return [f"{number}: {line}" for number, line in enumerate(text.splitlines(), start=1) if [line] != before[number - 1 : number]]


WRITTEN = {
    "a new line": (_step("add", "bar.sync 0", "before", 5, spelling="__syncthreads()"), "5:     __syncthreads();"),
    "of PTX": (_step("add", "fence.proxy.async", "after", 8), '9:     asm volatile("fence.proxy.async;" ::: "memory");'),
    "a number": (_step("alter", "cp.async.wait_group 0", own=5), "5:     wait<0>();  // 1 in flight"),
    "an operand of asm": (_step("alter", "cp.async.wait_group 0", own=8), '8:     asm volatile("cp.async.wait_group %0;" :: "n"(0));'),
    "a sum": (_step("alter", "mbarrier.init with a count that differs by +31", own=5), "5:     wait<32>();  // 1 in flight"),
    "the other parity": (_step("alter", "mbarrier.try_wait with the other parity", own=5), "5:     wait<0>();  // 1 in flight"),
    "a line is moved": (_step("move", "bar.sync", "after", 5, 4), "5:     __syncthreads();  // all"),
    "an instruction without its condition": (_step("move", "bar.sync", "after", 4, 7), "5:     __syncthreads();"),
    "a line with its condition": (_step("move", "line 7", "after", 4, 7), "5:     if (b) __syncthreads();"),
    "under the condition of the statement behind it": (
        _step("add", "fence.proxy.async", "before", 7, ptx=1),
        '7:     if (b) { asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads(); }',
    ),
    "before the condition": (
        replace(_step("add", "fence.proxy.async", "before", 21, ptx=1), at_condition=True),
        '21:     asm volatile("fence.proxy.async;" ::: "memory");',
    ),
    "a whole line of the source": (
        _step("add", "fence.proxy.async", "before", 21),
        '21:     asm volatile("fence.proxy.async;" ::: "memory");',
    ),
    "and before its comment": (
        _step("add", "bar.sync 0", "after", 21, spelling="__syncthreads()", ptx=1),
        "21:     if (t == 0 && (b > 1)) { a[0] = 2; __syncthreads(); }  // x",
    ),
    "beside a condition that may be what is meant": (
        _step("add", "fence.proxy.async", "before", 20, ptx=1),
        '20:     asm volatile("fence.proxy.async;" ::: "memory");',
    ),
    "a wait at an mbarrier": (
        _step("add", "mbarrier.try_wait.parity with parity 1 on the mbarrier k::full[0] (shared offset 8)", "after", 4),
        '5:     asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 1;'
        ' @!p bra again; }" ::'
        ' "r"((unsigned)__cvta_generic_to_shared(&full[0])) : "memory");',
    ),
    "an arrival at an mbarrier among bytes": (
        _step("add", "mbarrier.arrive on the mbarrier raw[8..15] (shared offset 8)", "after", 4),
        '5:     asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(&raw[8])) : "memory");',
    ),
    "the last argument of a wait": (
        _step("alter", "mbarrier.try_wait with the other parity", own=12),
        "12:     WAIT(&full[k % 2], (k / 2) ^ 1);",
    ),
    "the bytes of an expression": (_step("alter", "mbarrier.arrive.expect_tx with 512 bytes", own=13), "13:     expect(full, 512);  // x"),
    "fewer bytes": (_step("alter", "mbarrier.arrive.expect_tx with 64 bytes less", own=13), "13:     expect(full, (sizeof a) - 64);  // x"),
    "a statement that is one instruction": (
        _step("alter", "cp.async.bulk.wait_group 0", own=14),
        '14:     asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // all',
    ),
    "one of two numbers": (_step("alter", "setp.lt.u32 with 4 in place of 5", own=15), "15:     for (int i = 0; i < 4; i++) f(&a, i);"),
    "by one thread": (
        _step("alter", "mbarrier.arrive by the first thread only", own=4),
        "4:     if (threadIdx.x == 0) __syncthreads();  // all",
    ),
    "without a condition": (_step("leave-out", "condition", own=7), "7:     __syncthreads();"),
    "without the condition of a block": (_step("leave-out", "condition", own=16), "16:     { g(); }"),
    "without an exit": (_step("leave-out", "condition", own=9), "9:     return;"),
    "a scope in quotes": (_step("alter", "red.cta.add of a wider scope (.cluster)", own=17), '17:     ADD_AS("cluster", &a, 1);'),
    "zeros": (
        _step("add", "zeros in _ZZ1kE1s (64 bytes) and then bar.sync 0", "before", 1),
        "19:     for (unsigned i = threadIdx.x; i < sizeof(s); i += blockDim.x) reinterpret_cast<char*>(&s)[i] = 0;",
    ),
    "a line is left out": (_step("leave-out", "bar.sync", own=4), "4:     wait<1>();  // 1 in flight"),
}
NOT_WRITTEN = {
    "at an mbarrier": _step("add", "mbarrier.try_wait at [full]", "after", 4),
    "between a condition and its statement": _step("add", "bar.sync 0", "before", 3),
    "two numbers": _step("alter", "cp.async.wait_group 0", own=6),
    "a form without a number": _step("alter", "mbarrier.arrive.cta.b64", own=5),
    "below zero": _step("alter", "mbarrier.init with a count that differs by -2", own=5),
    "several statements": _step("leave-out", "bar.sync", own=6),
    "the body of a condition": _step("leave-out", "st.shared", own=3),
    "the end of the kernel": _step("leave-out", "bar.sync", own=10),
    "a condition in several lines": _step("leave-out", "condition", own=4),
    "two calls that wait": _step("alter", "mbarrier.try_wait with the other parity", own=19),
    "an instruction with operands": _step("alter", "mbarrier.arrive.shared.b64", own=14),
    "bytes without a variable": _step("add", "mbarrier.inval on the mbarrier at shared offset 8 (x)", "after", 4),
    "in another file": _step("move", "bar.sync", "before", 5, 0),
    "behind the end": _step("add", "bar.sync 0", "after", 80),
}


REWORDED = {
    "a number that is a part of a value": (
        'asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2));', "cp.async.wait_group 0", '"cp.async.wait_group 0;"'
    ),
    "a fence of wider scope": ("__threadfence_block();", "fence.sc.cta of a wider scope (.gpu)", "__threadfence();"),
    "a wider scope of libcu++": (
        "cuda::atomic_ref<int, cuda::thread_scope_block> a(x);", "atom.cta.add.u32 of a wider scope (.gpu)",
        "<int, cuda::thread_scope_device>",
    ),
    "an atomic operation": ("atomicAdd_block(x, 1);", "atom.cta.add of a wider scope (.gpu)", "atomicAdd(x, 1);"),
    "asm": (
        'asm("mbarrier.try_wait.acquire.cta.shared::cta.b64 p, [x];");  // .cta', "mbarrier.try_wait of a wider scope (.cluster)",
        'asm("mbarrier.try_wait.acquire.cluster.shared::cta.b64 p, [x];");  // .cta',
    ),
    "an order of libcu++": ("f.store(1, cuda::memory_order_relaxed);", "st.release.gpu.u32", "f.store(1, cuda::memory_order_release);"),
    "an order of asm": ('asm("ld.relaxed.gpu.u32 %0, [%1];");', "ld.acquire.gpu.u32", '"ld.acquire.gpu.u32 %0'),
    "an arrival that releases": (
        'asm("mbarrier.arrive.relaxed.cta.b64 _, [x];");', "mbarrier.arrive.cta.b64", '"mbarrier.arrive.release.cta',
    ),
    "an mbarrier's wait": (
        'asm("mbarrier.try_wait.relaxed.cta.b64 p, [x], 0;");', "mbarrier.try_wait.cta.b64", '"mbarrier.try_wait.acquire.cta',
    ),
    "a cluster's barrier": ('asm("barrier.cluster.arrive.relaxed;");', "barrier.cluster.arrive", '"barrier.cluster.arrive;"'),
    "copies that are counted": (
        'asm("cp.async.mbarrier.arrive.b64 [x];");', "cp.async.mbarrier.arrive.noinc.b64", '"cp.async.mbarrier.arrive.noinc.b64 [x]',
    ),
    "a mask": ("__syncwarp(0xff);", "bar.warp.sync 0xffff", "__syncwarp(0xffff);"),
    "a named barrier": ('asm("bar.sync 1, 64;");', "bar.sync 1, 96", 'asm("bar.sync 1, 96;");'),
    "bytes": ("expect(full, 1040);", "mbarrier.arrive.expect_tx.b64 with 16 bytes less", "expect(full, 1024);"),
    "all bytes": ("expect(full, 1040);", "mbarrier.arrive.expect_tx.b64 with 1024 bytes", "expect(full, 1024);"),
    "turns": ("for (; k < 5; k++) {", "setp.eq.s32 with 4 in place of 5", "for (; k < 4; k++) {"),
    "an update": (
        "if (t < n) bins[v[t]] += w * 2;", "red.shared.add.f32 in place of the load, the change and the store",
        "if (t < n) atomicAdd(&bins[v[t]], w * 2);",
    ),
}  # fmt: skip
NOT_REWORDED = {
    "a scope in a comment": ("f(x);  // thread_scope_block", "atom.cta.add of a wider scope (.gpu)"),
    "two scopes": ("g<thread_scope_block, thread_scope_block>();", "atom.cta.add of a wider scope (.gpu)"),
    "a state space": ('asm("ld.shared::cta.u32 %0, [%1];");', "ld.shared of a wider scope (.cluster)"),
    "two updates": ("a[t] += x; b[t] += y;", "red.shared.add.f32 in place of the load, the change and the store"),
    "another update": ("a[t] -= x;", "red.shared.add.f32 in place of the load, the change and the store"),
    "another bound": ("for (; k < 6; k++) {", "setp.eq.s32 with 4 in place of 5"),
}


@pytest.mark.parametrize(("line", "instruction", "new"), REWORDED.values(), ids=REWORDED)
def test_a_word_of_a_line_is_another(line: str, instruction: str, new: str) -> None:
    assert new in patched(f"{line}\n", [VerifiedFix((_step("alter", instruction, own=1),))], "k.cu")


@pytest.mark.parametrize(("line", "instruction"), NOT_REWORDED.values(), ids=NOT_REWORDED)
def test_no_word_is_another_where_the_line_does_not_tell_which(line: str, instruction: str) -> None:
    assert patched(f"{line}\n", [VerifiedFix((_step("alter", instruction, own=1),))], "k.cu") == ""


@pytest.mark.parametrize(("step", "line"), WRITTEN.values(), ids=WRITTEN)
def test_a_step_is_written_as_lines(step: FixStep, line: str) -> None:
    assert line in _changed(step)


@pytest.mark.parametrize("step", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_a_step_that_no_lines_are(step: FixStep) -> None:
    assert patched(SOURCE, [VerifiedFix((step,))], "k.cu") == ""


def test_a_step_in_another_file_is_not_written() -> None:
    step = _step("add", "bar.sync 0", "before", 5)
    assert patched(SOURCE, [VerifiedFix((step,))], "other.cu") == ""


def test_equal_steps_are_written_once() -> None:
    step = _step("add", "bar.sync 0", "before", 5)
    assert patched(SOURCE, [VerifiedFix((step,)), VerifiedFix((step,))], "k.cu").count("bar.sync 0") == 1


def test_places_between_two_lines_outside_of_nested_blocks_come_early() -> None:
    lines = "void k() {\n if (a) {\n  s = 1;\n }\n // }}}\n b = s;\n}\n"
    assert between(lines, [6, 3]) == [3, 4, 5, 2, 6]  # behind the write, behind its branch, before the read, around both
    assert between(lines, [6, 6]) == [5, 6]
    assert between(lines, []) == between(lines, [0, 0]) == []


@pytest.mark.parametrize(("line", "behind"), [(3, 4), (2, 4), (6, 6), (1, 1)])
def test_the_first_line_behind_the_blocks_of_a_line(line: int, behind: int) -> None:
    assert outside("void k() {\n if (a) {\n  s = 1;\n }\n // }}}\n b = s;\n}\n", line) == behind


ELSES = {
    "a statement": "if (a) f();\nelse g();\n",
    "in lines of their own": "if (a)\n  f();\nelse\n  g();\n",
    "a block": "if (a) {\n  f();\n} else {\n  g();\n}\n",
    "behind a block": "if (a) {\n  f();\n}\nelse {\n}\n",
}


@pytest.mark.parametrize(("where", "line"), [("after", 4), ("before", 2)])
def test_a_new_line_beside_a_directive_is_indented_as_what_follows(where: str, line: int) -> None:
    source = "void k() {\n#if A\n    f();\n#endif\n    g();\n}\n"
    assert "\n    __syncthreads();\n" in patched(
        source, [VerifiedFix((_step("add", "bar.sync 0", where, line, spelling="__syncthreads()"),))], "k.cu"
    )


@pytest.mark.parametrize("source", ELSES.values(), ids=ELSES)
def test_a_condition_with_an_else_stays(source: str) -> None:
    """The rest would not compile."""
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "if (a)" in text)
    step = FixStep("leave-out", "condition", "at", "", "k.cu", line, 0, "", line)
    assert patched(source, [VerifiedFix((step,))], "k.cu") == ""
    assert patched(source.replace("else", "g(); //"), [VerifiedFix((step,))], "k.cu")


GUARDED = "{\n#ifdef ODD\nif (t & 1)\n#endif\n__syncthreads();\ny = x;\n"


@pytest.mark.parametrize("action", ["leave-out", "add"])
def test_the_body_of_a_condition_above_a_directive_stays(action: str) -> None:
    """The next statement would be the body."""
    own = 5 if action == "leave-out" else 0
    step = FixStep(action, "bar.sync 0", "before" if action == "add" else "at", "", "k.cu", 5, 0, "__syncthreads()", own)
    assert patched(GUARDED, [VerifiedFix((step,))], "k.cu") == ""
    assert patched(GUARDED.replace("if (t & 1)", "f();"), [VerifiedFix((step,))], "k.cu")


@pytest.mark.parametrize("instruction", ["cp.async.mbarrier.arrive.noinc.shared::cta.b64", "mbarrier.arrive"])
@pytest.mark.parametrize("action", ["add", "alter"])
def test_an_instruction_that_lacks_its_operands_is_no_line(instruction: str, action: str) -> None:
    step = FixStep(action, instruction, "after" if action == "add" else "at", "", "k.cu", 1, 0, "", 1)
    assert patched("arrive(&full);\n", [VerifiedFix((step,))], "k.cu") == ""


TWO = "void k() {\n  if (t < n) {\n    s[t] = x;\n  } else {\n    y = s[t - n];\n  }\n}\n"


def test_branches_that_exclude_each_other_are_parted_by_a_barrier() -> None:
    (step,) = branches(TWO, [3, 5], "k.cu")
    text = patched(TWO, [VerifiedFix((step,))], "k.cu")
    assert text == "void k() {\n  if (t < n) {\n    s[t] = x;\n  }\n  __syncthreads();\n  if (!(t < n)) {\n    y = s[t - n];\n  }\n}\n"


@pytest.mark.parametrize(
    ("old", "new"), [("s[t] = x;", "s[t] = x, n = 0;"), ("void k() {", "__shared__ int n; void k() {"), ("t < n", "f(t)")]
)
def test_branches_are_not_parted_where_the_condition_may_change(old: str, new: str) -> None:
    assert list(branches(TWO.replace(old, new), [3, 5], "k.cu")) == []


def test_a_release_that_moves_comes_behind_a_barrier_of_the_warp() -> None:
    fix = "move the mbarrier.arrive at k.cu:2 after the read at k.cu:3, the last one of these bytes, with __syncwarp() between the two"
    source = "{\nif (lane == 31) arrive(&empty);\nsum += tile[lane];\n"
    both = list(moves(source, fix, "k.cu"))[-1]
    assert patched(source, [VerifiedFix(both)], "k.cu") == "{\nsum += tile[lane];\n__syncwarp();\nif (lane == 31) arrive(&empty);\n"


def test_no_statement_is_put_between_functions() -> None:
    source = "__device__ int get(int* p) { return *p; }\n__device__ void put(int* p) { *p = 1; }\n"
    step = FixStep("add", "bar.sync 0", "before", "", "k.cu", 2, 0, "__syncthreads()", 0)
    assert patched(source, [VerifiedFix((step,))], "k.cu") == ""
    assert patched("{\n" + source, [VerifiedFix((step,))], "k.cu")
