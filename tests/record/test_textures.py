"""Textures: the names of what fetches read, what is compared of them, and what makes a kernel `incomplete`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_support import Work, compared

import consan
from consan.backends.virtual import VirtualBackend
from consan.checker.logs.retained import read
from consan.instrument import surfaces, textures
from consan.instrument.isa import names_element
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.instrument.record.text import textures as recorded_names
from consan.instrument.rewriting.emit import Snippet
from consan.toolchain.assemble import assemble_cached

COUNT = 32
F = "{%f1, %f2, %f3, %f4}"
FORMS = {
    f"tex.1d.v4.f32.s32 {F}, [%d1, {{%r9}}];": True,
    f"@%p1 tex.base.1d.v4.f32.s32 {F}|%p2, [%d1, {{%r9}}];": True,
    f"tex.level.1d.v4.f32.s32 {F}, [%d1, {{3}}], %r8;": True,
    f"tex.1d.v4.f32.s32 {F}, [%d1, {{%r9}}], {{%r8}};": False,
    f"tex.1d.v4.f32.f32 {F}, [%d1, {{%f5}}];": False,
    f"tex.2d.v4.f32.s32 {F}, [%d1, {{%r9, %r8}}];": False,
    f"tex.grad.2d.v4.f32.f32 {F}, [%d1, {{%f5, %f6}}], {{%f5, %f6}}, {{%f5, %f6}};": False,
    f"tex.acube.v4.f32.f32 {F}, [%d1, {{%r9, %f6, %f7, %f8}}];": False,
    f"tex.a2dms.v4.f32.s32 {F}, [%d1, {{%r9, %r8, %r9, %r9}}];": False,
    "tex.3d.v2.f16x2.f32 {%r1, %r2}, [%d1, {%f5, %f6, %f7, %f8}];": False,
    f"tld4.a.a2d.v4.f32.f32 {F}, [%d1, {{%r9, %f5, %f6, %f6}}];": False,
}
FETCHED = "a launch fetches elements of a texture that may be among those that it writes"


def _ptx(body: str, target: str = "sm_80", before: str = "") -> str:
    return f"""
.version 9.0
.target {target}
.address_size 64
{before}
.visible .entry k(.param .u64 s, .param .u64 t, .param .u64 q) {{
.reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %d<16>; .reg .pred %p<4>;
ld.param.u64 %d1, [s]; ld.param.u64 %d2, [t]; ld.param.u64 %d3, [q]; mov.u32 %r9, %tid.x; mov.b32 %r8, 0; mul.wide.u32 %d4, %r9, 4;
add.u64 %d4, %d3, %d4; setp.eq.u32 %p1, %r9, 3; mov.b32 %f5, 0f3F000000; mov.b32 %f6, %f5; mov.b32 %f7, %f5; mov.b32 %f8, %f5;
{body} ret;
}}"""


def _run(body: str, texture: Any, *buffers: Any) -> tuple[Any, Any]:
    out = np.zeros(COUNT, np.float32)
    other, buffer = (*buffers, np.uint64(0), out)[:2] if buffers else (np.uint64(0), out)
    return consan.launch(consan.Kernel(_ptx(body), entry="k"), 1, COUNT, [texture, other, buffer], device="cpu"), out


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("form", FORMS)
def test_the_recorded_text_assembles(form: str, target: str) -> None:
    module = _ptx(f"{form} st.global.f32 [%d4], %f1;", target)
    assert "k" in assemble_cached(record(module, global_races=True).ptx, target).info
    fetch = next(each for each in parse(module).functions[0].instructions() if each.parts[0] in ("tex", "tld4"))
    assert names_element(fetch) == FORMS[form]


def test_names_are_below_those_of_surfaces() -> None:
    assert textures.HANDLE + textures.HANDLE_BITS == 62
    assert textures.FIRST + (1 << 62) == surfaces.FIRST


FETCH, STORE = f"tex.1d.v4.f32.s32 {F}, [%d1, {{%r9}}];", "st.global.f32 [%d4], %f1;"
ANY = f"tex.1d.v4.f32.f32 {F}, [%d1, {{%f5}}];"


def test_an_element_that_the_thread_itself_writes_later_is_a_warning() -> None:
    data = np.zeros(COUNT, np.float32)
    report, _ = _run(f"{FETCH} {STORE}", consan.Texture(data, memory="linear"), np.uint64(0), data)
    (finding,) = report.findings
    assert (finding.kind, finding.hazard, finding.severity) == ("data-race", "WAR", "warning")
    fetch = next(access for access in finding.accesses if access.op.startswith("tex."))
    assert (fetch.role, fetch.space, fetch.proxy) == ("texture fetch", "global", "texture")


@pytest.mark.parametrize(
    ("fetch", "memory", "same", "verdict"),
    [
        (ANY, "linear", True, "incomplete"),
        (ANY, "linear", False, "clean"),
        (ANY, "array", True, "clean"),
        (f"{ANY} sust.b.1d.b32.trap [%d2, {{%r8}}], 1;", "array", False, "incomplete"),
        (f"tex.1d.v4.f32.s32 {F}, [%d1, {{40}}];", "linear", True, "clean"),  # outside
    ],
)
def test_elements_that_no_text_names(fetch: str, memory: str, same: bool, verdict: str) -> None:
    data = np.zeros(COUNT, np.float32)
    fetch = fetch.replace("sust", "@%p1 sust")
    report, _ = _run(f"{fetch} {STORE}", consan.Texture(data, memory=memory), np.uint64(9), data if same else np.zeros(COUNT, np.float32))
    assert (report.verdict, report.findings) == (verdict, ())
    assert any(FETCHED in why for why in report.incomplete) == (verdict == "incomplete")


REFERENCE = f"tex.1d.v4.f32.s32 {F}, [image, {{%r9}}]; @%p1 tex.1d.v4.f32.s32 {F}, [image, {{4}}];"


def _bound(body: str, same: bool) -> Any:
    """A launch of a kernel that fetches through a reference of its module, and stores, here to the same memory."""
    data = np.zeros(COUNT, np.float32)
    image = consan.Texture(data, memory="linear").bound_to("image")
    args = [image, np.uint64(0), np.uint64(0), data if same else np.zeros(COUNT, np.float32)]
    return consan.launch(consan.Kernel(_ptx(body, before=".global .texref image;"), entry="k"), 1, COUNT, args, device="cpu")


@pytest.mark.parametrize("address", ["image", "%d5"])
def test_a_texture_reference_is_compared_as_an_object_is(address: str) -> None:
    """Thread 3 fetches what thread 4 writes. The handle of a reference may be moved, too."""
    body = "mov.u64 %d5, image; " + REFERENCE.replace("[image", f"[{address}")
    assert "k" in assemble_cached(record(_ptx(body, before=".global .texref image;"), global_races=True).ptx, "sm_80").info
    racy, barrier, apart = _bound(body + STORE, True), _bound(f"{body} bar.sync 0; {STORE}", True), _bound(body + STORE, False)
    assert {(each.kind, each.severity) for each in racy.findings} >= {("data-race", "error")}
    assert {each.severity for each in barrier.findings} <= {"warning"}
    assert (apart.verdict, apart.findings, apart.incomplete) == ("clean", (), ())


def test_a_fault_planted_in_the_handle_of_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_handle(snippet: Snippet, *_: Any) -> str:
        snippet.add(f"mov.b64 {(zero := snippet.register('b64'))}, 0;")
        return zero

    monkeypatch.setattr(recorded_names, "wide_address", no_handle)
    report = _bound(f"// without its handle\n{REFERENCE}{STORE}", True)
    assert not report.findings


def test_a_texture_reference_of_unknown_memory_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is on a GPU, whose driver knows objects only."""
    monkeypatch.setattr(VirtualBackend, "texture_memory", lambda self, handle: None)
    report = _bound(REFERENCE + STORE, False)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert any(FETCHED in why for why in report.incomplete)


def test_a_texture_reference_that_nothing_is_bound_to_ends_the_launch() -> None:
    ptx = _ptx(REFERENCE + STORE, before=".global .texref image;")
    report = consan.launch(consan.Kernel(ptx, entry="k"), 1, COUNT, [np.uint64(0), np.uint64(0), np.zeros(COUNT, np.float32)], device="cpu")
    assert any("no texture reference that a texture is bound to" in why for why in report.incomplete)


def test_a_texture_reference_that_is_a_parameter_is_not_recorded() -> None:
    ptx = _ptx(f"tex.1d.v4.f32.s32 {F}, [image, {{%r9}}]; {STORE}").replace(".param .u64 q)", ".param .u64 q, .param .texref image)")
    assert "k" in assemble_cached(ptx, "sm_80").info
    assert "of the parameter image, whose handle cannot be read" in record(ptx, global_races=True).refused["k"]


def test_names_are_computed_on_the_host() -> None:
    data = np.zeros(2 * COUNT, np.float32)
    args = [consan.Texture(data, memory="linear"), np.uint64(0), data]
    assert compared(Work(_ptx(f"{FETCH} {STORE}"), "k", (2, 1, 1), (COUNT, 1, 1), args, global_races=True)) == ""


def test_a_stored_run_has_the_memory_of_its_textures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = np.zeros(COUNT, np.float32)
    kernel = consan.Kernel(_ptx(f"{FETCH} {STORE}"), entry="k")
    consan.launch(kernel, 1, COUNT, [consan.Texture(data, memory="linear"), np.uint64(0), data], device="cpu", keep_histories=True)
    (path,) = tmp_path.glob(".consan/*.histories")
    (launch,) = read("it", path.read_bytes()).launches
    (memory,) = launch.textures.values()
    assert (memory.nbytes, memory.element_bytes, memory.numbered) == (4 * COUNT, 4, True)


@pytest.mark.parametrize(("fetch", "compared_with_others"), [(FETCH, True), (ANY, False)])
def test_launches_that_may_run_at_the_same_time(fetch: str, compared_with_others: bool) -> None:
    data = np.zeros(COUNT, np.float32)
    reads, writes = (consan.Kernel(_ptx(body), entry="k") for body in (f"{fetch} {STORE}", "st.global.f32 [%d4], %f5;"))
    given = [consan.Texture(data, memory="linear"), np.uint64(0), np.zeros(COUNT, np.float32)]
    with consan.check(device="cpu") as report:
        consan.launch(reads, 1, COUNT, given, device="cpu", stream=consan.Stream())
        consan.launch(writes, 1, COUNT, [np.uint64(0), np.uint64(0), data], device="cpu", stream=consan.Stream())
    assert report.verdict == ("violations" if compared_with_others else "incomplete")
