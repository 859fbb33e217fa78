"""`multimem` in launches of several ranks: results of each type, what faults, what is refused, and faults planted in the rewriting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from planted import plant
from ranks_support import launch

import consan
from consan import NotSupported, UsageError
from consan.instrument.rewriting import multicast

RANKS, WORDS = 3, 8
PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 own, .param .u64 many, .param .u64 out, .param .u32 rank) {
  .reg .pred %p<2>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %d<16>;
  ld.param.u64 %d1, [own]; ld.param.u64 %d2, [many]; ld.param.u64 %d3, [out]; ld.param.u32 %r9, [rank]; setp.eq.u32 %p1, %r9, 1;
BODY
  ret;
}
"""
# A type of NumPy for the memory of a rank, an instruction that sums it up, and the store of the result.
LOADS = {
    "words": ("u4", "ld_reduce.relaxed.sys.global.add.u32 %r1, [%d2+4];", "st.global.u32 [%d3+4], %r1;", [1]),
    "signed": ("i4", "ld_reduce.weak.global.min.s32 %r1, [%d2];", "st.global.u32 [%d3], %r1;", [0]),
    "bits": ("u4", "ld_reduce.acquire.gpu.global.xor.b32 %r1, [%d2+8];", "st.global.u32 [%d3+8], %r1;", [2]),
    "long": ("u8", "ld_reduce.relaxed.sys.add.u64 %d4, [%d2+8];", "st.global.u64 [%d3+8], %d4;", [1]),
    "double": ("f8", "ld_reduce.relaxed.sys.global.add.f64 %d4, [%d2];", "st.global.f64 [%d3], %d4;", [0]),
    "floats": (
        "f4",
        "ld_reduce.global.add.v4.f32 {%r1, %r2, %r3, %r4}, [%d2];",
        "st.global.v4.b32 [%d3], {%r1, %r2, %r3, %r4};",
        [0, 1, 2, 3],
    ),
    "halves": (
        "f2",
        "ld_reduce.relaxed.sys.global.add.acc::f32.v2.f16x2 {%r1, %r2}, [%d2];",
        "st.global.v2.b32 [%d3], {%r1, %r2};",
        range(4),
    ),
    "eight": (
        "f2",
        "ld_reduce.relaxed.sys.global.max.v8.f16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%d2];",
        "st.global.v4.b16 [%d3], {%h1, %h2, %h3, %h4}; st.global.v4.b16 [%d3+8], {%h5, %h6, %h7, %h8};",
        range(8),
    ),
}
SUM = {"min": np.minimum.reduce, "max": np.maximum.reduce, "xor": np.bitwise_xor.reduce, "add": np.add.reduce}


def run(body: str, dtype: str) -> tuple[Any, list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """The report, the memory of the ranks, and their results."""
    own = [(np.arange(WORDS) * (rank + 1) + 3 * rank).astype(dtype) for rank in range(RANKS)]
    out = [np.zeros(WORDS, dtype) for _ in range(RANKS)]
    many = consan.Multicast(own)
    kernel = consan.Kernel(PTX.replace("BODY", body), "k")
    return consan.launch(kernel, 1, 1, lambda rank: [own[rank], many, out[rank], rank], ranks=RANKS, device="cpu"), own, out


@pytest.mark.parametrize("name", LOADS)
def test_a_load_reduces_what_all_ranks_hold(name: str) -> None:
    dtype, load, store, places = LOADS[name]
    report, own, out = run(f"multimem.{load} {store}", dtype)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    operation = next(each for each in load.split()[0].split(".") if each in SUM)
    for result in out:
        np.testing.assert_array_equal(result[list(places)], SUM[operation](own)[list(places)].astype(dtype))


STORES = {
    "store": ("u4", "@%p1 multimem.st.weak.global.u32 [%d2+8], %r9;", lambda before: {2: 1}),
    "vector": ("f4", "@%p1 multimem.st.release.sys.global.v2.f32 [%d2], {%r9, %r9};", lambda before: {0: 1.4e-45, 1: 1.4e-45}),
    "sum": ("u4", "multimem.red.relaxed.sys.global.add.u32 [%d2+4], 5;", lambda before: {1: before[1] + 5 * RANKS}),
    "default": ("u4", "multimem.red.global.max.u32 [%d2+-0], 77;", lambda before: {0: 77}),
    "halves": ("f2", "mov.b32 %r1, 0x3c003c00; multimem.red.add.f16x2 [%d2], %r1;", lambda before: {0: before[0] + 3, 1: before[1] + 3}),
}


@pytest.mark.parametrize("name", STORES)
def test_a_store_and_a_reduction_reach_all_ranks(name: str) -> None:
    dtype, body, changed = STORES[name]
    before = [(np.arange(WORDS) * (rank + 1) + 3 * rank).astype(dtype) for rank in range(RANKS)]
    report, own, _ = run(body, dtype)
    assert (report.verdict, report.incomplete) == ("clean", ()), str(report)
    for old, new in zip(before, own, strict=True):
        wanted = changed(old)
        assert {at: new[at] for at in wanted} == {at: np.dtype(dtype).type(value) for at, value in wanted.items()}
        untouched = [at for at in range(WORDS) if at not in wanted]
        np.testing.assert_array_equal(new[untouched], old[untouched])


@pytest.mark.parametrize("body", ["ld.global.u32 %r1, [%d2];", "multimem.st.global.u32 [%d1], %r9;"])
def test_ordinary_addresses_and_those_of_many_are_not_the_same(body: str) -> None:
    report, _, _ = run(body, "u4")
    assert {finding.kind for finding in report.findings} == {"out-of-bounds"}, str(report)


@pytest.mark.parametrize(
    ("body", "arrays", "said"),
    [
        ("multimem.st.global.e4m3x4 [%d2], %r9;", 3, "multimem.st.global.e4m3x4 is not followed"),
        ("multimem.cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r9], 16;", 3, "multimem.cp.async.bulk"),
        ("", 2, "an array of each of 3 ranks"),
        ("", 0, "an array of each rank"),
    ],
)
def test_what_is_not_followed_is_refused(body: str, arrays: int, said: str) -> None:
    own = [np.zeros(WORDS, "u4") for _ in range(RANKS)]
    with pytest.raises((UsageError, NotSupported), match=said):
        consan.launch(
            consan.Kernel(PTX.replace("BODY", body), "k"), 1, 1, lambda rank: [own[rank], consan.Multicast(own[:arrays]), own[rank], rank],
            ranks=RANKS, device="cpu",
        )  # fmt: skip


def test_an_address_of_many_needs_several_ranks() -> None:
    own = np.zeros(WORDS, "u4")
    with pytest.raises(UsageError, match="needs a launch of several ranks"):
        consan.launch(consan.Kernel(PTX.replace("BODY", ""), "k"), 1, 1, [own, consan.Multicast([own]), own, 0], device="cpu")


# By fault of the rewriting: the text that stands there, what comes in its place, and a kernel with its fault, whose verdict changes.
MUTANTS = {
    "rank 0 alone is accessed": ("* (ranks - 1)]", "* 0]", "multimem_store", "SAME_SLOT"),
    "loads are relaxed at system scope": ("ld{each.how}", "ld.relaxed.sys.global", "multimem_reduce", "GPU_SCOPE"),
    "reductions release": ("red{each.how}", "red.release.sys.global", "multimem_store", "RELAXED"),
    "stores are strong": ("st{each.how}", "st.release.sys.global", "multimem_store", "NO_WAIT"),
}


@pytest.mark.parametrize("mutant", [pytest.param(mutant, marks=pytest.mark.slow if at else ()) for at, mutant in enumerate(MUTANTS)])
def test_a_wrong_rewriting_changes_what_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, name, fault = MUTANTS[mutant]

    def said() -> Any:
        report, out = launch(name, fault, 2)
        return sorted((each.kind, each.situation, [access.op for access in each.accesses]) for each in report.findings), [
            each.tolist() for each in out
        ]

    before = said()
    plant(monkeypatch, multicast, old, new)
    assert said() != before
