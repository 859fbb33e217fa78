"""multimem on the virtual machine, which is the only device of a multimem address; what is recorded of it, and what stays unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import consan
from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached

COUNT = 64


def _ptx(body: str) -> str:
    return f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {{
.reg .b32 %r<16>; .reg .f32 %f<9>; .reg .b64 %d<16>;
ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.u32 %r9, %tid.x;
mul.wide.u32 %d3, %r9, 16; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
{body} ret;
}}"""


def _run(body: str, dtype: Any = np.uint32, target: str = "sm_90") -> tuple[Any, npt.NDArray[Any]]:
    given, out = np.arange(1, 4 * COUNT + 1).astype(dtype), np.zeros(4 * COUNT, dtype)
    text = _ptx(body).replace("sm_90", target)
    assert "k" in assemble_cached(record(text).ptx, target).info
    return consan.launch(consan.Kernel(text, entry="k"), 1, COUNT, [given, out], device="cpu"), out


WEAK = {
    "loads": ("multimem.ld_reduce.weak.global.add.u32 %r1, [%d4]; st.global.u32 [%d5], %r1;", np.uint32, [1, 0, 0, 0]),
    "stores": ("ld.global.u32 %r1, [%d4]; multimem.st.global.u32 [%d5], %r1;", np.uint32, [1, 0, 0, 0]),
    "vectors": (
        "multimem.ld_reduce.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%d4]; multimem.st.weak.global.v4.f32 [%d5], {%f1, %f2, %f3, %f4};",
        np.float32,
        [1, 1, 1, 1],
    ),
}


@pytest.mark.parametrize("name", WEAK)
def test_one_device_loads_and_stores(name: str) -> None:
    body, dtype, kept = WEAK[name]
    report, out = _run(body, dtype)
    np.testing.assert_array_equal(out, np.arange(1, 4 * COUNT + 1) * np.tile(kept, COUNT))
    assert report.findings == ()
    assert report.verdict == "incomplete"
    assert {gap.opcode for gap in report.kernels[0].unmodelled} == {word for word in body.split() if word.startswith("multimem")}


SMALL = """.reg .b8 %h<9>; .reg .b16 %s<9>;
multimem.ld_reduce.global.add.e4m3x4 %r1, [%d4]; multimem.st.global.e4m3x4 [%d5], %r1;
multimem.ld_reduce.global.add.v2.e5m2x2 {%s1, %s2}, [%d4+4]; multimem.st.global.v2.e5m2x2 [%d5+4], {%s1, %s2};
multimem.ld_reduce.global.add.acc::f16.v4.e5m2 {%h1, %h2, %h3, %h4}, [%d4+8]; multimem.st.global.v4.e5m2 [%d5+8], {%h1, %h2, %h3, %h4};"""


def test_one_device_moves_elements_of_eight_bits() -> None:
    report, out = _run(SMALL, target="sm_100a")
    np.testing.assert_array_equal(out, np.arange(1, 4 * COUNT + 1) * np.tile([1, 1, 1, 0], COUNT))
    assert (report.verdict, report.findings) == ("incomplete", ())


SUMS = {
    "words": ("multimem.red.relaxed.gpu.global.add.u32 [%d2], %r9;", np.uint32, 0, COUNT * (COUNT - 1) // 2),
    "largest": ("multimem.red.global.max.u32 [%d2+4], %r9;", np.uint32, 1, COUNT - 1),
    "vectors": (
        "cvt.rn.f32.u32 %f1, %r9; multimem.red.release.sys.global.add.v2.f32 [%d2], {%f1, %f1};",
        np.float32,
        1,
        COUNT * (COUNT - 1) // 2,
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_one_device_reduces(name: str) -> None:
    body, dtype, place, total = SUMS[name]
    report, out = _run(body, dtype)
    assert out[place] == total
    assert (report.verdict, report.findings) == ("incomplete", ())


@pytest.mark.parametrize(
    ("body", "hazard"),
    [
        ("multimem.st.global.u32 [%d2], %r9;", "WAW"),
        ("multimem.st.global.u32 [%d5], %r9; multimem.ld_reduce.global.add.u32 %r1, [%d2]; st.global.u32 [%d4], %r1;", None),
    ],
)
def test_weak_accesses_are_compared(body: str, hazard: str | None) -> None:
    report, _ = _run(body)
    kinds = {(each.kind, each.severity) for each in report.findings}
    assert kinds == {("data-race", "error")}
    assert hazard is None or {each.hazard for each in report.findings} == {hazard}


def test_behind_a_strong_access_the_order_of_the_launch_is_unknown() -> None:
    report, _ = _run("multimem.st.global.u32 [%d2], %r9; multimem.red.release.gpu.global.add.u32 [%d2+8], 1;")
    assert (report.verdict, report.findings) == ("incomplete", ())


# PTX 9.1, which ptxas 13.0 does not assemble: the recorded text with an ordinary copy in place of it is assembled.
BULK = """.version 9.1
.target {target}
.address_size 64
.shared .align 128 .b8 row[128];
.visible .entry k(.param .u64 p) {{
.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>; .reg .b16 %h<3>;
ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, row; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1;
fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r1, 0; mov.b16 %h1, 255;
@%p1 bra end;
multimem.{copy}
cp.async.bulk.commit_group;
{wait}
end: bar.sync 0;
st.shared.u32 [%r4], 7;
ret;
}}"""
COPIES = {
    "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r3], 128;": np.arange(32),
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r3], 128, %h1;": np.arange(32) * np.tile([1, 1, 0, 0], 8),
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r3], 128;": np.arange(32),
}


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize(("wait", "kinds"), [("cp.async.bulk.wait_group 0;", set()), ("", {"missing-wait", "lifetime"})])
def test_the_source_of_a_bulk_copy_is_read_until_its_group_is_complete(copy: str, wait: str, kinds: set[str]) -> None:
    out = np.zeros(32, np.uint32)
    report = consan.launch(consan.Kernel(BULK.format(target="sm_100a", copy=copy, wait=wait), entry="k"), 1, 32, [out], device="cpu")
    assert {finding.kind for finding in report.findings} == kinds
    assert report.verdict == ("violations" if kinds else "incomplete")
    assert [gap.opcode for gap in report.kernels[0].unmodelled] == [f"multimem.{copy.split()[0]}"]
    if wait:
        np.testing.assert_array_equal(out, COPIES[copy])


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("copy", [copy for copy in COPIES if "cp_mask" not in copy])
def test_the_recorded_text_of_a_bulk_copy_assembles(copy: str, target: str) -> None:
    text = record(BULK.format(target=target, copy=copy, wait=""), global_races=True).ptx
    assert f"multimem.{copy}" in text
    assert "k" in assemble_cached(text.replace("multimem.cp", "cp").replace(".version 9.1", ".version 9.0"), target).info
