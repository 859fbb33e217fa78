"""Launches whose accesses are proven apart before they run: on random kernels, with faults planted in the proof, and at the edges."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from planted import plant

import consan
from consan.instrument.isa import queries
from consan.ranges import operations, overlaps, slices, together, values, walk
from consan.session.planning import proofs

GRID, BLOCK, WORDS = 4, 32, 4096
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data) {\n"
HEAD += ".reg .b32 %r<40>; .reg .b64 %d<9>; .reg .pred %p<9>;\n"
HEAD += "ld.param.u64 %d1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;\n"
STEPS = (
    *("add.s32 {0}, {1}, {4};", "mul.lo.s32 {0}, {1}, {3};", "shl.b32 {0}, {1}, {3};", "sub.s32 {0}, 1000, {1};", "xor.b32 {0}, {1}, {4};"),
    *("mad.lo.s32 {0}, {1}, {3}, {4};", "mad.lo.s32 {0}, %r2, {4}, {1};", "shl.b32 {0}, {1}, {3};", "mul.lo.s32 {0}, {1}, {3};"),
    *("add.s32 {0}, {1}, {2};", "sub.s32 {0}, {1}, {2};", "mul.lo.s32 {0}, {1}, {3};", "shl.b32 {0}, {1}, {3};", "shr.u32 {0}, {1}, {3};"),
    *("and.b32 {0}, {1}, {4};", "or.b32 {0}, {1}, {2};", "xor.b32 {0}, {1}, {3};", "rem.u32 {0}, {1}, {4};", "div.u32 {0}, {1}, {3};"),
    *("setp.lt.s32 %p1, {1}, {4}; selp.b32 {0}, {1}, {2}, %p1;", "setp.lt.u32 %p1, {1}, {4}; @%p1 add.s32 {0}, {1}, {4};"),
)
ACCESSES = ("st.global.u32 [%d3], %r1;", "st.global.u32 [%d3], %r4;", "ld.global.u32 %r39, [%d3];", "st.global.v2.u32 [%d3], {%r1, %r1};")


def _random_kernel(seed: int) -> str:
    """Two accesses at addresses that some arithmetic gives, each under a guard or none."""
    rng, code, number = random.Random(seed), HEAD, 5
    for place in range(2):
        fresh = False
        for _ in range(rng.randrange(1, 4)):
            given = [f"%r{number - 1 if fresh else rng.choice((4, 4, 4, 1))}", f"%r{rng.choice((1, 2, 4))}"]
            fresh = True
            code += rng.choice(STEPS).format(f"%r{number}", *given, rng.randrange(1, 4), rng.choice((3, 7, 31, 63, 100))) + "\n"
            number += 1
        wide = rng.random() < 0.2
        code += f"rem.u32 %r{number}, %r{number - 1}, {WORDS // 2}; mul.wide.u32 %d2, %r{number}, {8 if wide else 4};\n"
        code += "add.s64 %d3, %d1, %d2;\n"
        bound = f"setp.lt.u32 %p2, %r{rng.choice((1, 2, 4))}, {rng.choice((1, 3, 31, 70))}; @%p2 "
        guard = rng.choice(("", "", bound))
        code += f"add.s64 %d3, %d3, {place * rng.choice((0, 8192, 16384))}; {guard}{ACCESSES[3] if wide else rng.choice(ACCESSES[:3])}\n"
        number += 1
    return code + "ret; }"


def _launch(kernel: Any, monkeypatch: pytest.MonkeyPatch, *, proves: bool, data: Any = None) -> Any:
    monkeypatch.setattr(proofs, "PROVES", proves)
    args = [np.arange(2 * WORDS, dtype=np.int32)] if data is None else data
    return consan.launch(kernel, GRID, BLOCK, args, device="cpu", global_memory="on")


@pytest.mark.parametrize("seeds", [range(21, 27), pytest.param(range(500), marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_what_is_proven_has_no_race(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full log of the same launch has as many accesses, and none that race."""
    apart = clean = 0
    for seed in seeds:
        kernel = consan.Kernel(_random_kernel(seed))
        full, light = (_launch(kernel, monkeypatch, proves=proves) for proves in (False, True))
        proven = light.kernels[0].global_proven
        assert (full.verdict, full.findings) == (light.verdict, light.findings), seed
        assert "incomplete" not in (full.verdict, light.verdict)
        assert proven in (0, full.kernels[0].global_accesses), seed
        assert not (proven and full.findings), seed
        apart, clean = apart + (proven > 0), clean + (not full.findings)
    assert 0 < apart <= clean
    assert apart >= clean * 3 // 4


OWN = "data[256 + at] = at;"
ADD = "atomicAdd(data + threadIdx.x, 1);"
PACKED = 'asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(data + threadIdx.x), "r"(at));'
GUARDED = 'asm volatile("{{ .reg .pred p; setp.gt.s32 p, %1, 600; @p st.global.u32 [%0], %1; }}" :: "l"({}), "r"(data[512 + at]));'
WIDE = "atomicAdd(reinterpret_cast<unsigned long long*>(data) + threadIdx.x, 1ull);"
# Two threads may both come to the last line (SEMANTICS.md, R-MO2): the second atomic adds nothing, and its result is used.
TRY_LOCK = "if (threadIdx.x || at > 32) return; int other = at ^ 32; "
TRY_LOCK += "if (atomicCAS(data + at, at, 9999) == at) if (atomicAdd(data + other, 0) == other) data[512 + at] = 1;"
# A part of the proof, a fault in it, and a kernel with a race that is missed with it.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "threads of a CTA": (overlaps, "if not items.are_disjoint():", "if False:", "data[blockIdx.x * 32 + threadIdx.x / 2] = threadIdx.x;"),
    "CTAs": (overlaps, "if (begin[1:] < end[:-1]).any():", "if False:", "data[threadIdx.x] = blockIdx.x;"),
    "ends of ranges": (overlaps, "(self.steps[:, None] + end)", "(self.steps[:, None] + begin)", "data[threadIdx.x] = blockIdx.x;"),
    "reads": (overlaps, "reached = any(", "reached = False and any(", "data[1024 + at] = data[1025 + at];"),
    "own reads": (overlaps, "(writes.thread[at] == self.thread) & ", "", "data[at] += data[at & ~1];"),
    "reads of a shift": (overlaps, "inside &= self.begin", "inside |= self.begin", "data[at] = data[at + 1];"),
    "constant loads": (slices, "not is_noncoherent(instruction)", "True", "data[at] = __ldg(data + at) + 1;"),
    "comparisons": (values, "ctas + threads.max()", "ctas + threads.min()", f"{OWN} if (at >= 100) data[0] = at;"),
    "where they hold": (values, "where(most <= 0, below,", "where(most <= 0, not below,", f"{OWN} if (at < 64) data[0] = at;"),
    "ways": (walk, "[0]) is node.guard.value\n", "[0]) is not node.guard.value\n", f"{OWN} if (threadIdx.x) data[blockIdx.x] = at;"),
    "ways by values": (walk, "return node.successors if", "return node.successors[:1] if", f"{OWN} if (data[1024 + at] > 0) data[0] = at;"),
    "results that are read": (together, " and is_unread(function, instruction)", "", TRY_LOCK),
    "weak writes": (together, "if strong and access.writes", "if access.writes", "data[threadIdx.x] = blockIdx.x;"),
    "scopes": (together, " and access.scope in reached", "", "atomicAdd_block(data + threadIdx.x, 1);"),
    "atomics of other bytes": (overlaps, "reduced.setdefault(kind, [])", "reduced.setdefault(0, [])", f"{ADD} {WIDE}"),
    "packed types": (queries, '.endswith("x2")', '.endswith("x9")', f"{ADD} {PACKED}"),
    "atomics and reads": (overlaps, "reached = any(", "reached = False and any(", f"{ADD} data[256 + at] = data[at];"),
    "what a zero decides": (operations, "each.is_zero", "each", f"{OWN} if ((data[1024 + at] & 1) == 1) data[0] = at;"),
    "a guard from memory holds": (
        walk,
        "if step.accesses:\n            if (reads",
        "if step.accesses and (not guard or held):\n            if (reads",
        GUARDED.format("data + threadIdx.x"),
    ),
    "bits in common": (values, "if seen & own:", "if False:", "data[blockIdx.x * 33 | threadIdx.x] = at;"),
}


def _kernel(body: str) -> consan.Kernel:
    head = '\nextern "C" __global__ void k(int* data) { int at = blockIdx.x * 32 + threadIdx.x; '
    return consan.Kernel(f"{head}{body} }}", arch="sm_80")


@pytest.mark.parametrize("part", FAULTS)
def test_a_fault_in_the_proof(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, body = FAULTS[part]
    assert _launch(_kernel(body), monkeypatch, proves=True).findings
    plant(monkeypatch, module, old, new)
    broken = _launch(_kernel(body), monkeypatch, proves=True)
    assert (broken.findings, broken.kernels[0].global_proven > 0) == ((), True)


# What is proven, and what looks like it and is not.
EDGES: dict[str, tuple[str, bool]] = {
    "a loop over the grid": ("for (int i = at; i < 500; i += gridDim.x * 32) data[i] = i;", True),
    "a loop that reaches the next array": ("for (int i = at; i < 513; i += gridDim.x * 32) data[i] = data[512 + threadIdx.x];", False),
    "rows": ("for (int i = threadIdx.x; i < 100; i += 32) data[blockIdx.x * 100 + i] = i;", True),
    "rows that overlap by one": ("for (int i = threadIdx.x; i < 101; i += 32) data[blockIdx.x * 100 + i] = i;", False),
    "in place": ("data[at] = 2 * data[at];", True),
    "a branch by a value": ("if (data[at] > 0) data[at] = 1; else data[at] = 2;", True),
    "thread 0": ("if (threadIdx.x == 0) data[blockIdx.x] = at;", True),
    "all of a row and thread 0": ("data[at] = 1; if (threadIdx.x == 0) data[128 + blockIdx.x / 2] = at;", False),
    "bytes of a word": ("reinterpret_cast<char*>(data)[at] = 1;", True),
    "an index from memory": ("data[512 + data[at]] = 1;", False),
    "another block's data": ("data[at] = data[(at + 32) % 128];", False),
    "atomics": ("atomicAdd(data, 1);", True),
    "atomics of each thread": ("atomicAdd(data + at, 1); atomicMax(data + at % 64, 1);", True),
    "atomics of all scopes": ("atomicAdd(data, 1); atomicAdd_system(data, 1);", True),
    "atomics of a CTA": ("atomicAdd_block(data, 1);", False),
    "an atomic whose result is used": ("data[256 + at] = atomicAdd(data, 1);", False),
    "atomics of two sizes": (f"{ADD} {WIDE}", False),
    "atomics of halves and of words": (f"{ADD} {PACKED}", False),
    "atomics, and a thread that reads": ("atomicAdd(data, 1); if (at == 5) data[1] = data[0];", False),
    "atomics, and a plain store": ("atomicAdd(data, 1); if (at == 5) data[0] = 1;", False),
    "strong stores": ("*const_cast<volatile int*>(data) = at;", True),
    "strong stores, and a strong load": ("volatile int* word = data; *word = at; data[256 + at] = *word;", False),
    "atomics and a condition from memory": ("if (data[512 + at] > 600) atomicAdd(data, 1);", True),
    "a guard from memory": (GUARDED.format("data + at"), True),
    "a guard from memory, and one place of all CTAs": (GUARDED.format("data + threadIdx.x"), False),
    "only reads": ("if (data[at] == -5) __trap();", True),
}


@pytest.mark.parametrize("name", EDGES)
def test_what_is_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, apart = EDGES[name]
    report = _launch(_kernel(body), monkeypatch, proves=True)
    assert (report.kernels[0].global_proven > 0) is apart
    if apart:
        assert (report.verdict, "global-memory" in report.checked) == ("clean", True)


def test_a_launch_is_proven_by_its_own_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel, launched with an offset that is apart, and with one that is not; then with too many threads for the first array."""
    source = '\nextern "C" __global__ void k(int* data, int from) { int at = blockIdx.x * 32 + threadIdx.x; data[at] = data[from + at]; }'
    kernel, data = consan.Kernel(source, arch="sm_80"), np.arange(WORDS, dtype=np.int32)
    for offset, apart in ((128, True), (0, True), (127, False), (1, False), (128, True)):
        report = _launch(kernel, monkeypatch, proves=True, data=[data, np.int32(offset)])
        assert (report.kernels[0].global_proven > 0, report.verdict) == (apart, "clean" if apart else "violations")
    monkeypatch.setattr(proofs, "PROVES", True)
    report = consan.launch(kernel, GRID + 1, BLOCK, [data, np.int32(128)], device="cpu", global_memory="on")
    assert (report.kernels[0].global_proven, report.verdict) == (0, "violations")


@pytest.mark.parametrize(("stride", "apart"), [(32, True), (40, True), (31, False), (0, False), (-32, True)])
def test_tiles_of_a_stride(stride: int, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles that overlap by an element, all at one place, and from behind."""
    source = '\nextern "C" __global__ void k(int* data, int stride) { data[1024 + blockIdx.x * stride + threadIdx.x] = blockIdx.x; }'
    report = _launch(consan.Kernel(source, arch="sm_80"), monkeypatch, proves=True, data=[np.zeros(WORDS, np.int32), np.int32(stride)])
    assert report.kernels[0].global_proven == (128 if apart else 0)
    assert report.verdict == "clean" if apart else report.verdict != "clean"


def test_a_block_counts_what_each_launch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proven launch and one that is not, of one kernel: each in the form that serves, and both in the report."""
    source = '\nextern "C" __global__ void k(int* data, int from) { int at = blockIdx.x * 32 + threadIdx.x; data[at] = data[from + at]; }'
    kernel = consan.Kernel(source, arch="sm_80")
    with consan.check(device="cpu", global_memory="on") as block:
        for offset in (128, 127):
            consan.launch(kernel, GRID, BLOCK, [np.zeros(WORDS, np.int32), np.int32(offset)])
    report = block.report
    assert report.verdict == "violations"
    assert "global-memory" in report.checked
    assert [(each.launches, each.global_accesses, each.global_proven) for each in report.kernels] == [(2, 512, 256)]


def test_a_module_with_state_has_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form without global memory would have a variable of its own."""
    source = '\n__constant__ int by = 3;\nextern "C" __global__ void k(int* data) { data[blockIdx.x * 32 + threadIdx.x] = by; }'
    kernel, data = consan.Kernel(source, arch="sm_80"), np.zeros(WORDS, np.int32)
    report = _launch(kernel, monkeypatch, proves=True, data=[data])
    assert (report.kernels[0].global_proven, report.verdict, data[:128].tolist()) == (0, "clean", [3] * 128)
