"""Forms of PTX 9.2 to 9.5: `st.async` of 128 bits, `atom` and `red` with .add.noftz.f32, bulk copies with .ignore_oob, loads with
.proxy::readonly. Racy kernels and repaired ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import break_checker, dropped, leaf

import consan
from consan._errors import UsageError
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached

COUNT = 32
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;"
PUSH = """setp.eq.u32 %p2, %r9, 0; @%p2 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
shl.b32 %r1, %r9, 4; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; cvt.u64.u32 %d2, %r9; mov.b128 %q1, {%d2, %d2};
st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r1], %q1, [bar];
BODY ld.shared.u32 %r3, [%r1+8]; st.global.u32 [%d4], %r3; bar.sync 0;"""
ADD = "red.global.add.noftz.f32 [%d1], 0f3F800000; atom.global.add.noftz.v2.f32 {%f1, %f2}, [%d1+8], {%f3, %f3}; BODY"
# Thread 0 copies 48 bytes behind the first 16 of `out`, without the first 4 and the last 8; thread 5 writes before it has waited for that.
COPY = """setp.eq.u32 %p2, %r9, 0; @%p2 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; mov.u32 %r2, s; mov.b32 %r5, 4; mov.b32 %r6, 8;
@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;
@%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r2], [%d1+16], 48, %r5, %r6, [bar];
@%p3 st.global.u32 [%d1+OTHER], 7; BODY setp.lt.u32 %p2, %r9, 12; shl.b32 %r1, %r9, 2; add.u32 %r1, %r1, %r2;
add.u64 %d4, %d4, 128; @%p2 ld.shared.u32 %r3, [%r1]; @%p2 st.global.u32 [%d4], %r3;"""
READONLY = "ld.global.u32.proxy::readonly %r3, [%d4]; BODY add.u64 %d4, %d4, 128; st.global.u32 [%d4], %r3;"
KERNELS = {
    "ignore_oob, no wait": (COPY.replace("BODY", "").replace("OTHER", "0") + WAIT, {"missing-wait"}),
    "ignore_oob": (COPY.replace("BODY", WAIT).replace("OTHER", "0"), set()),
    "ignore_oob beside a store to the first byte read": (COPY.replace("BODY", WAIT).replace("OTHER", "20"), {"data-race"}),
    "ignore_oob beside a store to the last byte read": (COPY.replace("BODY", WAIT).replace("OTHER", "52"), {"data-race"}),
    "ignore_oob beside a store before": (COPY.replace("BODY", WAIT).replace("OTHER", "16"), set()),
    "ignore_oob beside a store behind": (COPY.replace("BODY", WAIT).replace("OTHER", "56"), set()),
    "readonly": (READONLY.replace("BODY", ""), set()),
    "readonly behind a barrier": ("st.global.u32 [%d4], %r9; bar.sync 0; " + READONLY.replace("BODY", ""), {"data-race"}),
    "readonly beside a store": (READONLY.replace("BODY", "@%p3 st.global.u32 [%d1], 0;"), {"data-race"}),
    "st.async, no wait": (PUSH.replace("BODY", "") + WAIT, {"missing-wait"}),
    "st.async": (PUSH.replace("BODY", WAIT), set()),
    "sums": (ADD.replace("BODY", ""), set()),
    "sums that are read": (ADD.replace("BODY", "st.global.f32 [%d4+128], %f1;"), set()),  # of the others a proof needs no replay
    "sums beside a store": (ADD.replace("BODY", "@%p3 st.global.u32 [%d1], 0;"), {"data-race"}),
    "sums beside a store to the second one": (ADD.replace("BODY", "@%p3 st.global.u32 [%d1+12], 0;"), {"data-race"}),
}
# A fault, and a kernel with other findings then.
FAULTS = {
    "a 128-bit store writes": (dropped("StoreAsync"), "st.async, no wait"),
    "it writes 16 bytes": (leaf("StoreAsync", "bytes", "8"), "st.async, no wait"),  # the other half is read
    "atomic operations order themselves": (leaf("GlobalAccess", "strong", "false"), "sums that are read"),
    "what a copy leaves out at its beginning": (
        ("global_operands.hpp", "copy.source() & ~(15ull << 60);", "copy.source() & ~(15ull << 60) & ~15ull;"),
        "ignore_oob beside a store before",
    ),
    "what a copy leaves out at its end": (("global_operands.hpp", "(u32)(copy.source() >> 60)", "0u"), "ignore_oob beside a store behind"),
    "no edge orders readonly loads": (leaf("GlobalAccess", "nc", "false"), "readonly behind a barrier"),
    "sums write": (dropped("GlobalWrite"), "sums beside a store"),
    "both numbers of a vector": (leaf("GlobalAccess", "bytes", "4"), "sums beside a store to the second one"),
}


def _ptx(body: str) -> str:
    return f"""
.version 9.5
.target sm_90
.address_size 64
.shared .align 8 .b64 bar; .shared .align 16 .b8 s[512];
.visible .entry k(.param .u64 q) {{
.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<8>; .reg .b128 %q<2>; .reg .pred %p<4>;
ld.param.u64 %d1, [q]; mov.u32 %r9, %tid.x; mul.wide.u32 %d4, %r9, 4; add.u64 %d4, %d1, %d4; setp.eq.u32 %p3, %r9, 5;
mov.b32 %f3, 0f3F800000;
{body} ret;
}}"""


def _launch(body: str) -> tuple[Any, np.ndarray[Any, Any]]:
    out = np.arange(2 * COUNT, dtype=np.uint32) if "ignore_oob" in body else np.zeros(2 * COUNT, np.uint32)
    return consan.launch(consan.Kernel(_ptx(body), entry="k"), 1, COUNT, [out], device="cpu"), out


def _errors(report: Any) -> set[str]:
    return {each.kind for each in report.findings if each.severity == "error"}


@pytest.mark.parametrize("name", KERNELS)
def test_races_are_reported(name: str) -> None:
    body, kinds = KERNELS[name]
    report, _ = _launch(body)
    assert _errors(report) == kinds
    assert report.verdict == ("violations" if kinds else "clean")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault, kernel = FAULTS[name]
    body, kinds = KERNELS[kernel]
    break_checker(monkeypatch, tmp_path, (replay, grid), *fault)
    assert _errors(_launch(f"// {name}\n{body}")[0]) != kinds


def test_values() -> None:
    np.testing.assert_array_equal(_launch(KERNELS["st.async"][0])[1][:COUNT], np.arange(COUNT))
    copied = _launch(KERNELS["ignore_oob"][0])[1][COUNT:][:12]
    assert copied.tolist() == [0xFFFFFFFF, *range(5, 14), 0xFFFFFFFF, 0xFFFFFFFF]
    sums = _launch(KERNELS["sums"][0])[1].view(np.float32)
    assert sums[[0, 2, 3]].tolist() == [COUNT] * 3


@pytest.mark.parametrize("name", KERNELS)
def test_the_recorded_text_assembles(name: str) -> None:
    try:
        made = assemble_cached(record(_ptx(KERNELS[name][0]), global_races=True).ptx, "sm_90")
    except UsageError as error:
        pytest.skip(f"the assembler here is older than these forms: {error}")
    assert "k" in made.info
