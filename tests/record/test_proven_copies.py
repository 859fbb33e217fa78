"""Proofs of launches with bulk and tensor copies, and with leaders of warps, beside the full log of the same launches."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from planted import plant
from sampled import one_in

import consan
from consan import ranges
from consan.instrument.ptx import parse
from consan.ranges import (
    LaunchExtents,
    NotProven,
    Slice,
    accesses,
    boxes,
    copies,
    deciding,
    forms,
    overlaps,
    slices,
    walk,
)
from consan.session.planning import proofs
from consan.session.planning.proofs import Proofs
from consan.tensormap import encoding

CTAS, BLOCK = 4, 64
ROWS, COLUMNS = 8, 16  # of a box of 4-byte elements
HEAD = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .align 64 .b8 other[128], .param .u64 data, .param .u32 many) {{
.reg .b32 %r<40>; .reg .b64 %d<20>; .reg .pred %p<20>;
.shared .align 128 .b8 tile[{ROWS * COLUMNS * 4}]; .shared .align 8 .b8 full[8];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, {BLOCK}, %r1; shl.b32 %r4, %r2, 3; mov.u32 %r5, tile; mov.u32 %r6, full;
ld.param.u64 %d1, [data]; ld.param.u32 %r7, [many];
mov.b64 %d12, map; cvta.param.u64 %d2, %d12; mov.b64 %d13, other; cvta.param.u64 %d3, %d13;
setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; shl.b32 %r8, %r1, 3; add.s32 %r8, %r5, %r8; mov.u32 %r9, 0; mul.wide.u32 %d4, %r3, 4;
add.s64 %d4, %d1, %d4; st.shared.u32 [%r8], %r2; st.shared.u32 [%r8+4], %r3; @%p1 mbarrier.init.shared.b64 [%r6], 1;
fence.proxy.async.shared::cta; bar.sync 0;
"""
ELECT = "elect.sync %r39|%p3, -1; and.pred %p4, %p2, %p3;\n"
STORE = "@%p4 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{0}, {{{1}, {2}}}], [%r5];\n"
ADD = "@%p4 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [{0}, {{{1}, {2}}}], [%r5];\n"
WAIT = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bar.sync 0;\n"
LOAD = f"""@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], {ROWS * COLUMNS * 4};
@%p4 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [{{0}}, {{{{{{1}}, {{2}}}}}}], [%r6];
{{{{ .reg .pred q; again: mbarrier.try_wait.parity.shared.b64 q, [%r6], 0; @!q bra again; }}}}
bar.sync 0;
"""
OUT = f"@%p4 cp.async.bulk.global.shared::cta.bulk_group [%d5], [%r5], {{}};\n{WAIT}"
MINE = "mul.wide.u32 %d5, %r2, 256; add.s64 %d5, %d5, %d1;\n"
FROM_LANE_0 = "selp.u32 %r10, 1, 0, %p3; shfl.sync.idx.b32 %r11, %r10, 0, 31, -1;"
CLEAN, RACY = "clean", "violations"


def _stored(x: str, y: str, before: str = "", where: str = "%d2") -> str:
    return before + ELECT + STORE.format(where, x, y) + WAIT


LOOP = "mov.u32 %r20, 0;\nround:\n{} add.s32 %r20, %r20, 1; setp.lt.u32 %p9, %r20, %r7; @%p9 bra round;\n"
# A kernel, whether it is proven, and the verdict; empty: it may be correct, but not by what a proof knows.
CASES: dict[str, tuple[str, bool, str]] = {
    "boxes of their own": (_stored("0", "%r4"), True, CLEAN),
    "boxes that overlap by a row": (_stored("0", "%r10", "mul.lo.s32 %r10, %r2, 7;"), False, RACY),
    "the same box": (_stored("0", "%r9"), False, RACY),
    "a coordinate in place of the other": (_stored("%r4", "0"), False, RACY),
    "boxes side by side": (_stored("%r10", "%r11", "and.b32 %r10, %r2, 1; shl.b32 %r10, %r10, 4; shl.b32 %r11, %r2, 3;"), True, CLEAN),
    "all threads store": (STORE.format("%d2", "0", "%r4").replace("@%p4 ", "") + WAIT, False, ""),
    "boxes outside but for one": (_stored("0", "%r10", "mul.lo.s32 %r10, %r4, 1000;"), True, CLEAN),
    "boxes at an edge": (_stored("%r10", "%r11", "and.b32 %r10, %r2, 1; mul.lo.s32 %r10, %r10, 24; shl.b32 %r11, %r2, 3;"), True, CLEAN),
    "a load that begins outside": (ELECT + LOAD.format("%d2", "-8", "%r4") + STORE.format("%d3", "0", "%r4") + WAIT, True, CLEAN),
    "loads whose rows begin outside": (
        "sub.s32 %r10, %r4, 4;" + ELECT + LOAD.format("%d2", "0", "%r10") + STORE.format("%d3", "0", "%r4") + WAIT,
        True,
        CLEAN,
    ),
    "a load of the first row": (ELECT + LOAD.format("%d2", "0", "-7") + STORE.format("%d2", "0", "%r4") + WAIT, False, RACY),
    "a load and a store": (ELECT + LOAD.format("%d2", "0", "%r4") + STORE.format("%d3", "0", "%r4") + WAIT, True, CLEAN),
    "a load of what another one stores": (
        ELECT + LOAD.format("%d2", "0", "%r4") + "add.s32 %r10, %r4, 8;" + STORE.format("%d2", "0", "%r10") + WAIT,
        False,
        RACY,
    ),
    "two stores without an order": (ELECT + STORE.format("%d2", "0", "%r4") * 2 + WAIT, False, ""),
    "a store in each round": (ELECT + LOOP.format(STORE.format("%d2", "0", "%r4") + WAIT), False, CLEAN),
    "rounds of stores": (
        "mul.lo.s32 %r10, %r4, %r7;\n" + ELECT + LOOP.format(STORE.format("%d2", "0", "%r10") + "add.s32 %r10, %r10, 8;" + WAIT),
        True,
        CLEAN,
    ),
    "rounds that loaded values end": (
        ELECT
        + LOOP.format(STORE.format("%d2", "0", "%r4") + WAIT)
        .replace("%r7;", "%r30;")
        .replace("round:", "round: ld.global.u32 %r30, [%d4];"),
        False,
        "",
    ),
    "a store until a loaded value ends it": (
        f"{ELECT}round: ld.global.u32 %r30, [%d4]; setp.eq.u32 %p9, %r30, 0; @%p9 bra over;\n{STORE.format('%d2', '0', '%r4')}{WAIT}"
        "bra round;\nover:\n",
        False,
        CLEAN,
    ),
    "a guard from lane 0": (
        ELECT + FROM_LANE_0 + "setp.ne.u32 %p5, %r11, 0; @%p5 st.global.u32 [%d4], %r1;",
        True,
        CLEAN,
    ),
    "a leader's number from lane 0": (
        ELECT + FROM_LANE_0 + "mul.wide.u32 %d5, %r11, 4096; add.s64 %d5, %d5, %d4; st.global.u32 [%d5], %r1;",
        False,
        CLEAN,
    ),
    "sums of all": (ELECT + ADD.format("%d2", "0", "%r9") + WAIT, True, CLEAN),
    "sums and a store": (
        ELECT + ADD.format("%d2", "0", "%r9") + "setp.eq.u32 %p8, %r2, 3; and.pred %p4, %p4, %p8;" + STORE.format("%d2", "0", "%r9") + WAIT,
        False,
        RACY,
    ),
    "sums and a load": (ELECT + ADD.format("%d2", "0", "%r9") + WAIT + LOAD.format("%d2", "0", "0"), False, RACY),
    "bulk copies of their own": (ELECT + MINE + OUT.format(256), True, CLEAN),
    "bulk copies that overlap": (ELECT + MINE + OUT.format(272), False, RACY),
    "a size among the parameters": (ELECT + MINE + "shl.b32 %r10, %r7, 4;" + OUT.format("%r10"), True, CLEAN),
    "sizes of CTAs": (ELECT + MINE + "shl.b32 %r10, %r2, 4; add.s32 %r10, %r10, 208;" + OUT.format("%r10"), True, CLEAN),
    "sizes of CTAs that overlap": (ELECT + MINE + "shl.b32 %r10, %r2, 4; add.s32 %r10, %r10, 240;" + OUT.format("%r10"), False, RACY),
    "copies that ignore their source": (
        "setp.ne.u32 %p9, %r2, 1; @!%p9 st.global.u32 [%d1], %r1; @%p1 cp.async.ca.shared.global [%r5], [%d1], 16, %p9; cp.async.wait_all;",
        False,
        RACY,
    ),
    "a leader stores": (ELECT + "mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; @%p4 st.global.u32 [%d5], %r2;", True, CLEAN),
    "leaders of two warps store": (ELECT + "mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; @%p3 st.global.u32 [%d5], %r1;", False, ""),
    "a leader stores at its lane": (ELECT + "@%p4 st.global.u32 [%d4], %r2;", True, CLEAN),
    "a leader stores, thread 0 loads": (
        ELECT + "mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; @%p4 st.global.u32 [%d5], %r2; @%p1 ld.global.u32 %r10, [%d5];",
        False,
        "",
    ),
    "a leader stores beside its lane": (
        ELECT + "@%p4 st.global.u32 [%d4+128], %r2; not.pred %p5, %p3; and.pred %p5, %p5, %p2; @%p5 ld.global.u32 %r10, [%d4+128];",
        True,
        CLEAN,
    ),
    "the others store where the leader does": (
        ELECT + "mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; @%p4 st.global.u32 [%d5], %r2; @!%p3 st.global.u32 [%d4+4], %r1;",
        False,
        "",
    ),
    "leaders of two masks store": (
        ELECT + "and.b32 %r10, %r1, 31; setp.ge.u32 %p9, %r10, 16; setp.ne.u32 %p10, %r1, %r1; @%p9 elect.sync %r38|%p10, 0xffff0000;"
        "and.pred %p10, %p10, %p2; mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; @%p4 st.global.u32 [%d5], %r1;"
        "@%p10 st.global.u32 [%d5], %r1;",
        False,
        "",
    ),
    "a leader of a mask in a register": (
        "mov.u32 %r10, -1; elect.sync %r39|%p3, %r10; and.pred %p4, %p2, %p3;" + STORE.format("%d2", "0", "%r4") + WAIT,
        True,
        CLEAN,
    ),
    "a branch of the leader": (ELECT + "@!%p4 bra over;\n" + STORE.format("%d2", "0", "%r4") + "over:\n" + WAIT, True, CLEAN),
    "all store behind a branch of the leader": (
        ELECT + "@!%p4 bra over;\n" + STORE.format("%d2", "0", "%r4") + "over:\n" + WAIT + "st.global.u32 [%d4], %r3;",
        True,
        CLEAN,
    ),
    "a warp's number from its lane 0": (
        "shr.u32 %r10, %r1, 5; shfl.sync.idx.b32 %r11, %r10, 0, 31, -1; mad.lo.s32 %r12, %r2, 2, %r11; shl.b32 %r12, %r12, 3;"
        "elect.sync %r39|%p4, -1;\n" + STORE.format("%d2", "0", "%r12") + WAIT,
        True,
        CLEAN,
    ),
    "a warp's number that its lane 0 loads": (
        "ld.global.u32 %r10, [%d4]; shfl.sync.idx.b32 %r11, %r10, 0, 31, -1; mad.lo.s32 %r12, %r2, 2, %r11; shl.b32 %r12, %r12, 3;"
        + _stored("0", "%r12"),
        False,
        "",
    ),
    "a lane's number from another lane": (
        "shfl.sync.idx.b32 %r11, %r1, 0, 31, -1; mul.wide.u32 %d5, %r11, 4; mul.wide.u32 %d6, %r2, 256; add.s64 %d5, %d5, %d6;"
        "add.s64 %d5, %d5, %d1; st.global.u32 [%d5], %r1;",
        False,
        "",
    ),
    "columns that overlap": (_stored("%r10", "0", "mul.lo.s32 %r10, %r2, 8;"), False, RACY),
    "boxes at an edge that overlap": (
        _stored("%r10", "0", "setp.eq.u32 %p8, %r2, 0; selp.b32 %r10, 32, %r4, %p8; add.s32 %r10, %r10, 0;"),
        False,
        RACY,
    ),
    "a thread loads what its copy stores": (
        "mul.wide.u32 %d5, %r2, 256; add.s64 %d5, %d5, %d1; mov.pred %p4, %p1;" + OUT.format(256) + "@%p1 ld.global.u32 %r10, [%d5];",
        False,
        CLEAN,
    ),
    "a store in each of many rounds": (
        ELECT + LOOP.format(STORE.format("%d2", "0", "%r4") + WAIT).replace("%r7;", "100;"),
        False,
        CLEAN,
    ),
    "sums of elements of two sizes": (
        ELECT
        + "@%p4 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r5], 256;\n"
        + "@%p4 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%d1], [%r5], 256;\n"
        + WAIT,
        False,
        "",
    ),
    "the others store at one place": (
        ELECT + "mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d5, %d1; not.pred %p5, %p3; and.pred %p5, %p5, %p2;@%p5 st.global.u32 [%d5], %r2;",
        False,
        "",
    ),
    "a leader stores at its lane, and a lane loads": (
        ELECT + "@%p4 st.global.u32 [%d4], %r2; setp.eq.u32 %p8, %r1, 5; @%p8 ld.global.u32 %r10, [%d4+-4];",
        False,
        "",
    ),
    "a map whose place is chosen, and boxes that meet": (
        _stored("0", "%r4", "mov.b64 %d15, %d3; mov.b64 %d15, %d2;", "%d15")
        + "ld.global.u32 %r10, [%d4]; setp.eq.u32 %p8, %r10, 77; @%p8 mov.b64 %d15, %d3;",
        False,
        CLEAN,
    ),
    "a branch decides who stores": ("@%p1 bra over;\n" + _stored("0", "%r9") + "over:\nst.global.u32 [%d4], %r1;", False, ""),
    "a map that a pointer names": (_stored("0", "%r4", where="%d1"), False, ""),
    "a map whose place is chosen": (_stored("0", "%r4", "setp.eq.u32 %p8, %r2, 9; @%p8 mov.b64 %d2, %d3;"), False, CLEAN),
    "a map that begins behind its parameter": (_stored("0", "%r4", "add.s64 %d14, %d2, 0;", "%d14"), True, CLEAN),
}


def _arrays() -> list[Any]:
    """Two tensors of their own, 40 columns of 64 rows: a box at column 24 is whole, one at column 32 is not."""
    return [np.zeros((64, 36), np.uint32), np.zeros((64, 36), np.uint32), np.zeros(4096, np.uint32)]


def _launch(body: str, monkeypatch: pytest.MonkeyPatch, *, proves: bool, arrays: list[Any] | None = None) -> Any:
    monkeypatch.setattr(proofs, "PROVES", proves)
    one, other, data = arrays or _arrays()
    maps = [consan.TensorMap(each, (ROWS, COLUMNS)) for each in (one, other)]
    kernel = consan.Kernel(f"{HEAD}{body}\nret; }}", arch="sm_90a")
    return consan.launch(kernel, CTAS, BLOCK, [*maps, data, np.uint32(2)], device="cpu", global_memory="on")


@pytest.mark.parametrize("name", one_in(2, CASES, str))
def test_what_is_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is proven is clean in its full log, too, and has as many accesses."""
    body, apart, verdict = CASES[name]
    full, light = (_launch(body, monkeypatch, proves=proves) for proves in (False, True))
    assert light.verdict == full.verdict
    assert full.verdict in (verdict, *(() if verdict else ("clean", "incomplete", "violations")))
    maps = CTAS if name.startswith("a map that begins") else 0  # copies read a map there, which is no parameter for the log
    assert light.kernels[0].global_proven == (full.kernels[0].global_accesses - maps if apart else 0)


@pytest.mark.parametrize(("rows", "apart"), [(0, False), (31, False), (32, True), (-8, True), (-7, False)])
def test_maps_of_tensors_that_overlap(rows: int, apart: bool) -> None:
    """Boxes of 32 rows are stored by one map; the first 8 rows of another tensor, which begins some rows behind, are loaded."""
    body = ELECT + LOAD.format("%d3", "0", "0") + STORE.format("%d2", "0", "%r4") + WAIT
    maps = [encoding.encode_tiled("u32", 1 << 20 | at * 64, (16, 64), (64,), (16, 8)) for at in (64, 64 + rows)]
    module: Any = SimpleNamespace(number=0, plain="", instrumented=SimpleNamespace(module=parse(f"{HEAD}{body}ret; }}")))
    count = Proofs().accesses(module, "k", [*maps, bytes(8), bytes(4)], LaunchExtents((CTAS, 1, 1), (BLOCK, 1, 1)))
    assert (count > 0) is apart


def test_a_copy_is_another_write_in_each_round() -> None:
    """Rounds that are gone through at once: at one place, and at places of their own."""
    form = forms.AccessForm(None, 0, 4, True, False, 1, "cp.async.bulk", False, asynchronous=True)
    for of_cta, apart in ((np.zeros(1, np.int64), False), (4 * np.arange(16), True), (2 * np.arange(16), False)):
        access = accesses.SpreadAccess(np.zeros(1, np.int64), of_cta, np.zeros(1, np.int64), 4, True, False, 0, 16, form)
        assert (not overlaps.meet([walk.Path(np.zeros(1, np.int64), np.zeros(1, np.int64), accesses=[access])])) is apart


@pytest.mark.parametrize(("case", "certain"), [("boxes of their own", True), ("sums of all", False)])
def test_the_footprint_of_copies(case: str, certain: bool) -> None:
    """Boxes are touched for certain; reductions of another launch may meet them."""
    kernel = Slice(parse(f"{HEAD}{CASES[case][0]}ret; }}").functions[0])
    maps = [encoding.encode_tiled("u32", 1 << 20, (16, 64), (64,), (16, 8))] * 2
    (touched,) = ranges.footprint(kernel, (*maps, bytes(8), bytes(4)), LaunchExtents((CTAS, 1, 1), (BLOCK, 1, 1)))
    rows = 1 if case == "sums of all" else CTAS
    assert (touched.certain, touched.begin.tolist(), touched.end.tolist()) == (certain, [0], [rows * ROWS * COLUMNS * 4])


# What is not followed: the opcode of a tensor load, or its map, and why.
REASONS = {
    "im2col": ("3d", ".im2col", "copies with im2col are not followed"),
    "gather4": ("2d", ".tile::gather4", "copies with tile::gather4 are not followed"),
}


@pytest.mark.parametrize("name", REASONS)
def test_why_a_copy_is_not_followed(name: str) -> None:
    dim, mode, why = REASONS[name]
    coordinates = "{%r9, %r9, %r9}, [%r6], {%rs1}" if name == "im2col" else "{%r9, %r9, %r9, %r9, %r9}, [%r6]"
    place, rest = coordinates.split("}", 1)
    text = HEAD.replace(".reg .pred", ".reg .b16 %rs<2>; .reg .pred") + ELECT
    opcode = f"cp.async.bulk.tensor.{dim}.shared::cta.global{mode}.mbarrier::complete_tx::bytes"
    text += f"{opcode} [%r5], [%d2, {place}}}]{rest}; ret; }}"
    with pytest.raises(NotProven, match=why):
        Slice(parse(text).functions[0])


MAPS = {
    "im2col": (encoding.encode_im2col("f32", 4096, (4, 8, 8), (16, 128), (0,), (0,), 4, 8), "im2col copies are not followed"),
    "interleaved": (
        encoding.encode_tiled("f16", 4096, (16, 8, 4), (256, 2048), (8, 4, 2), interleave=16),
        "interleaved tensor maps are not followed",
    ),
    "nonsense": (b"\xff" * 128, "tensor map"),
}


@pytest.mark.parametrize("name", MAPS)
def test_why_a_map_is_not_followed(name: str) -> None:
    data, why = MAPS[name]
    kernel = Slice(parse(f"{HEAD}{_stored('0', '%r4')}ret; }}").functions[0])
    parameters = data, bytes(128), bytes(8), bytes(4)
    with pytest.raises(NotProven, match=why):
        ranges.prove(kernel, parameters, LaunchExtents((CTAS, 1, 1), (BLOCK, 1, 1)))


# A part of the proof, a fault in it, and a case that is proven with it.
FAULTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "rows of a box": (boxes, "np.arange(count) * step * stride", "np.arange(1) * step * stride", "boxes that overlap by a row"),
    "strides of a tensor": (boxes, "each[part] * stride for each", "each[part] * 64 * stride for each", "boxes that overlap by a row"),
    "columns of a box": (boxes, "form[0][1] * info.element_bytes", "4", "columns that overlap"),
    "what begins outside": (boxes, "first = sum(distance * stride", "first = 9 * sum(distance * stride", "a load of the first row"),
    "sizes of copies": (accesses, "size_of(parts[1])", "256", "bulk copies that overlap"),
    "sizes that differ": (boxes, "_same(total, np.zeros_like(total))", "pass", "sizes of CTAs that overlap"),
    "boxes that differ": (boxes, "raise Fork([number", "return; raise Fork([number", "boxes at an edge that overlap"),
    "copies are no threads": (accesses, "numbers = _COPIES - numbers", "numbers = numbers", "a thread loads what its copy stores"),
    "copies repeat": (overlaps, " | repeats[1:]", "", "two stores without an order"),
    "copies repeat in rounds of loaded values": (
        walk,
        "if path.node in self._kernel.repeated:",
        "if False:",
        "a store until a loaded value ends it",
    ),
    "sums beside stores": (overlaps, "written += (united(*_in_order(each)) for each in reduced.values())", "pass", "sums and a store"),
    "sums of other elements": (overlaps, "reduced.setdefault(kind, [])", "reduced.setdefault(0, [])", "sums of elements of two sizes"),
    "one of a warp's lanes leads": (accesses, "if self.leads else None", "if True else None", "the others store at one place"),
    "a leader is any lane": (accesses, "_LEADERS - leaders.numbers // _LANES", "leaders.numbers", "a leader stores, thread 0 loads"),
    "the others are all lanes": (
        walk,
        "yield replace(self, leads=False,",
        "yield replace(self, threads=self.threads[:0], leads=False,",
        "the others store where the leader does",
    ),
    "all lanes lead": (accesses, "first if same else None", "first", "a leader stores at its lane, and a lane loads"),
    "lanes of one value": (accesses, "(part == part[first][number]).all()", "True", "a lane's number from another lane"),
    "values from lane 0": (
        slices,
        "not any(each.predicate or _brings(each) for each in made)",
        "True",
        "a leader's number from lane 0",
    ),
    "masks": (slices, "elects(instruction) and self._of_all_lanes(instruction)", "elects(instruction)", "leaders of two masks store"),
    "a map's place": (copies, "len(made) == 1 and", "len(made) and", "a map whose place is chosen, and boxes that meet"),
    "branches that decide": (deciding, "not nodes.isdisjoint(region)", "False", "a branch decides who stores"),
}


@pytest.mark.parametrize("part", FAULTS)
def test_a_fault_in_the_proof(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case = FAULTS[part]
    body = CASES[case][0]
    assert _launch(body, monkeypatch, proves=True).kernels[0].global_proven == 0
    plant(monkeypatch, module, old, new)
    assert _launch(body, monkeypatch, proves=True).kernels[0].global_proven > 0
