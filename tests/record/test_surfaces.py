"""Surfaces: names of their bytes, what is recorded of them, what makes a kernel `incomplete`, and their accesses on the virtual machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compact_support import Work, compared
from record_support import KERNELS, twin_file

import consan
from consan.instrument import surfaces
from consan.instrument.functions.analyse import plan_functions
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached

COUNT = 32
ALIASED = "surfaces of several handles, one of them written, may be of one array"
FORMS = {
    "suld.b.1d.b8.trap %h1, [%d1, {%r9}];": [],
    "suld.b.2d.cg.v4.b32.zero {%r1, %r2, %r3, %r4}, [%d1, {%r8, %r9}];": [],
    "suld.b.a2d.v2.b64.clamp {%d5, %d6}, [%d1, {%r9, %r8, 0, %r9}];": ["suld.b.a2d.v2.b64.clamp"],
    "@%p1 sust.b.a1d.b16.trap [%d1, {%r9, %r8}], %h1;": [],
    "@!%p1 sust.b.3d.wt.v2.b32.zero [%d1, {%r8, %r9, 1, 0}], {%r1, %r2};": [],
    "sust.b.2d.b32.clamp [%d1, {%r8, %r9}], %r1;": ["sust.b.2d.b32.clamp"],
    "sust.p.2d.v4.b32.trap [%d1, {%r9, %r9}], {%r1, %r2, %r3, %r4};": ["sust.p.2d.v4.b32.trap"],
    "sured.b.add.1d.s32.trap [%d1, {%r8}], %r1;": [],
    "sured.p.min.2d.b64.zero [%d1, {%r9, %r9}], %d1;": [],
    "sured.b.and.3d.b32.clamp [%d1, {%r8, %r9, 1, 0}], %r1;": ["sured.b.and.3d.b32.clamp"],
}


def _ptx(body: str, target: str = "sm_80") -> str:
    return f"""
.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 s, .param .u64 t, .param .u64 q) {{
.reg .b32 %r<16>; .reg .b16 %h<4>; .reg .b64 %d<16>; .reg .pred %p<4>;
ld.param.u64 %d1, [s]; ld.param.u64 %d2, [t]; ld.param.u64 %d3, [q]; mov.u32 %r9, %tid.x; mul.lo.u32 %r8, %r9, 16; mul.wide.u32 %d4, %r9, 4;
add.u64 %d4, %d3, %d4; setp.eq.u32 %p1, %r9, 3; mov.u32 %r7, %ctaid.x; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;
mov.b16 %h1, 0;
{body} ret;
}}"""


def _run(body: str, handles: tuple[int, int] = (1, 2), grid: int = 1) -> tuple[Any, Any]:
    out = np.zeros(COUNT, np.uint32)
    args = [*map(np.uint64, handles), out]
    return consan.launch(consan.Kernel(_ptx(body), entry="k"), grid, COUNT, args, device="cpu"), out


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
@pytest.mark.parametrize("form", FORMS)
def test_the_recorded_text_assembles(form: str, target: str) -> None:
    assert "k" in assemble_cached(record(_ptx(form, target), global_races=True).ptx, target).info


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_known_of_a_form_makes_its_kernel_incomplete(form: str) -> None:
    plans = plan_functions(parse(_ptx(form)), recorded=True)
    assert [gap.opcode for gap in plans["k"].stats.unmodelled] == FORMS[form]
    if not form.startswith("sust.p"):  # which the machine does not execute
        report, _ = _run(form)
        assert (report.verdict, report.findings) == ("incomplete" if FORMS[form] else "clean", ())


def test_names_are_apart_and_above_all_addresses() -> None:
    found = set()
    for geometry in surfaces.GEOMETRIES:
        places = surfaces.fields(geometry)
        assert sum(bits for _, bits in places) <= surfaces.HANDLE
        assert [low for low, _ in places] == [sum(bits for _, bits in places[:number]) for number in range(len(places))]
        found.add(surfaces.FIRST | 5 << surfaces.HANDLE | sum(number + 1 << low for number, (low, _) in enumerate(places)))
    assert min(found) >= 3 << 62
    assert surfaces.named(surfaces.FIRST | 5 << surfaces.HANDLE | 2 << 20 | 12, "a2d") == "surface 5 at x=12, y=2, layer=0"
    assert surfaces.in_order("a2d", ["layer", "x", "y", "ignored"]) == ["x", "y", "layer"]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("sust.b.1d.b32.trap [%d1, {%r8}], %r9; sust.b.1d.b32.trap [%d2, {%r8}], %r9;", "incomplete"),
        ("suld.b.1d.b32.trap %r1, [%d1, {%r8}]; sust.b.1d.b32.trap [%d2, {%r8}], %r1;", "incomplete"),
        ("suld.b.1d.b32.trap %r1, [%d1, {%r8}]; suld.b.1d.b32.trap %r2, [%d2, {%r8}]; st.global.u32 [%d4], %r1;", "clean"),
    ],
)
def test_two_handles_may_be_of_one_array(body: str, verdict: str) -> None:
    report, _ = _run(body)
    assert (report.verdict, report.findings) == (verdict, ())
    assert any(ALIASED in why for why in report.incomplete) == (verdict == "incomplete")


RACES = {
    "lanes": ("sust.b.1d.b32.trap [%d1, {0}], %r9;", 1, {("data-race", "WAW")}),
    "part of a vector": (
        "sust.b.1d.v4.b32.trap [%d1, {%r8}], {%r9, %r9, %r9, %r9}; suld.b.1d.b32.trap %r1, [%d1, {28}];",
        1,
        {("data-race", "RAW")},
    ),
    "rows apart": ("sust.b.2d.b32.trap [%d1, {0, %r9}], %r9;", 1, set()),
    "layers apart": ("sust.b.a1d.b32.trap [%d1, {%r9, 0}], %r9;", 1, set()),
    "samples": ("sured.p.add.1d.b32.trap [%d1, {%r9}], 1; @%p1 sust.b.1d.b32.trap [%d1, {16}], %r9;", 1, {("data-race", "WAW")}),
    "CTAs": ("sust.b.1d.b32.trap [%d1, {%r8}], %r7;", 2, {("global-race", "WAW")}),
    "reductions": ("sured.b.add.1d.u32.trap [%d1, {0}], 1;", 2, set()),
}


@pytest.mark.parametrize("name", RACES)
def test_accesses_are_compared_by_their_bytes(name: str) -> None:
    body, grid, expected = RACES[name]
    report, _ = _run(body, grid=grid)
    assert {(each.kind, each.hazard) for each in report.findings} == expected


SUMS = {"add": sum(range(COUNT)), "max": COUNT - 1, "or": COUNT - 1, "min": 0, "and": 0}


@pytest.mark.parametrize("operation", SUMS)
@pytest.mark.parametrize("kind", ["b", "p"])
def test_the_machine_reduces(operation: str, kind: str) -> None:
    word = "b32" if kind == "p" or operation in ("or", "and") else "u32"
    body = f"sured.{kind}.{operation}.1d.{word}.trap [%d1, {{{4 if kind == 'b' else 1}}}], %r9; bar.sync 0;"
    _, out = _run(f"{body} suld.b.1d.b32.trap %r1, [%d1, {{4}}]; st.global.u32 [%d4], %r1;")
    assert set(out) == {SUMS[operation]}


def test_the_machine_moves_vectors_and_bytes() -> None:
    body = """mov.b32 %r1, 0x01020304; sust.b.2d.v2.b32.trap [%d1, {%r8, 5}], {%r1, %r9}; bar.sync 0;
    add.u32 %r6, %r8, 1; suld.b.2d.b8.trap %h1, [%d1, {%r6, 5}]; add.u32 %r6, %r8, 4; suld.b.2d.b32.trap %r2, [%d1, {%r6, 5}];
    cvt.u32.u16 %r3, %h1; mad.lo.u32 %r3, %r2, 256, %r3; st.global.u32 [%d4], %r3;"""
    np.testing.assert_array_equal(_run(body)[1], np.arange(COUNT) * 256 + 3)


@pytest.mark.parametrize(("outside", "expected"), [("zero", 0), ("clamp", 9)])
def test_a_negative_coordinate_is_outside(outside: str, expected: int) -> None:
    body = "sust.b.1d.b32.trap [%d1, {%r8}], 9; bar.sync 0; neg.s32 %r6, %r8;"
    _, out = _run(f"{body} suld.b.1d.b32.{outside} %r1, [%d1, {{%r6}}]; st.global.u32 [%d4], %r1;")
    np.testing.assert_array_equal(out, [9, *[expected] * (COUNT - 1)])


def test_a_coordinate_outside_ends_the_launch_with_trap() -> None:
    report, _ = _run("neg.s32 %r6, %r8; sust.b.1d.b32.trap [%d1, {%r6}], 9;")
    assert report.verdict != "clean"
    assert "outside of the surface" in str(report)


@pytest.mark.parametrize("name", ["surface_within_a_cta", "surface_sums_of_ctas"])
@pytest.mark.parametrize("racy", [True, False])
def test_the_names_of_bytes_are_computed_on_the_host(name: str, racy: bool) -> None:
    path = KERNELS / "global" / f"{name}.cu"
    spec, made = twin_file.read(path), twin_file.kernel(path, racy)
    assert compared(Work(made.ptx, "kernel", spec.grid, spec.block, spec.parameters(spec.fresh_args()), global_races=True)) == ""


def test_a_coordinate_out_of_a_surface_is_not_computed() -> None:
    body = "suld.b.1d.b32.trap %r1, [%d1, {%r8}]; add.u32 %r1, %r1, %r8; sust.b.1d.b32.trap [%d1, {%r1}], %r9;"
    args = [np.uint64(1), np.uint64(2), np.zeros(COUNT, np.uint32)]
    assert compared(Work(_ptx(body), "k", (2, 1, 1), (COUNT, 1, 1), args, global_races=True)) == ""
