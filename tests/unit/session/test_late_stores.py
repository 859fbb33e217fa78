"""Texts in which stores come behind looks: which stores are kept, and that a thread sees no difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import twin_file

import consan
from consan.instrument.ptx import parse
from consan.session.planning import crossings
from consan.session.planning.late_stores import late_stores

GUARD = Path(__file__).parents[2] / "kernels/global/crossed_guard_a_store.cu"
STORE, LOOK = "st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r1, [%rd1+{}];"
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{{
.reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<2>;
ld.param.u64 %rd1, [a]; setp.eq.u32 %p1, 0, 1;
{}
ret;
}}
"""
BETWEEN = {
    "nothing": ("", True),
    "acquire and release": ("fence.acq_rel.gpu;", True),
    "fence.sc": ("fence.sc.gpu;", False),
    "fence.sc of a CTA": ("fence.sc.cta;", True),
    "membar": ("membar.gl;", False),
    "barrier": ("bar.sync 0;", False),
    "weak load": ("ld.global.u32 %r2, [%rd1+64];", False),
    "constant load": ("ld.global.nc.u32 %r2, [%rd1+64];", True),
    "store": ("st.global.u32 [%rd1+64], 2;", True),
    "used atomic": ("atom.global.add.u32 %r2, [%rd1+64], 1; st.global.u32 [%rd1+32], %r2;", True),  # it is a look itself
    "unused atomic": ("atom.global.add.u32 %r2, [%rd1+64], 1;", True),
    "loop": ("again: st.global.u32 [%rd1+64], 2; @%p1 bra again;", True),
}


def _kernel(between: str, look: int = 16) -> str:
    return KERNEL.format("\n".join((STORE, between, LOOK.format(look), "st.global.u32 [%rd1+48], %r1;")))


@pytest.mark.parametrize("between", BETWEEN)
def test_a_store_is_kept_where_nothing_orders_it(between: str) -> None:
    text, kept = BETWEEN[between]
    late = late_stores(parse(_kernel(text)), {8}, between_ctas=True)
    assert (late is not None) == kept
    if late is not None:
        memory, changed = (np.arange(100, 132, dtype=np.uint32) for _ in range(2))
        consan.launch(consan.Kernel(_kernel(text), entry="k"), 1, 1, [memory], device="cpu")
        consan.launch(consan.Kernel(late.text, entry="k"), 1, 1, [changed], device="cpu")
        assert np.array_equal(memory, changed)
        assert late.text.rindex("st.relaxed") > min(late.text.find(each) % (1 << 20) for each in ("ld.relaxed", "atom.global.add.u32 %r2"))


@pytest.mark.parametrize(("found", "same"), [(100, True), (7, False)])
def test_a_used_atomic_reads_in_its_place(found: int, same: bool) -> None:
    """A store of another thread in between ends the run."""
    text = _kernel("").replace(STORE, f"atom.global.cas.b32 %r2, [%rd1], {100}, 1; st.relaxed.gpu.global.u32 [%rd1+64], %r2;")
    late = late_stores(parse(text), {8}, between_ctas=True, looks={9})
    assert late is not None
    changed = late.text.replace("ld.relaxed.gpu.global.u32 %r1", f"st.global.u32 [%rd1], {found}; ld.relaxed.gpu.global.u32 %r1")
    memory = np.arange(100, 132, dtype=np.uint32)
    report = consan.launch(consan.Kernel(changed, entry="k"), 1, 1, [memory], device="cpu")
    assert ("out-of-bounds" in {each.kind for each in report.findings}) != same
    assert not same or (memory[0], memory[16], memory[12]) == (1, 100, 104)


def test_a_fence_of_a_cta_keeps_order_within_it() -> None:
    assert late_stores(parse(_kernel("fence.sc.cta;")), {8}, between_ctas=False) is None


def test_other_lines_are_left_alone() -> None:
    assert late_stores(parse(_kernel("")), {1}, between_ctas=True) is None


@pytest.mark.parametrize("place", [0, 4])
def test_a_look_at_the_own_store_finds_it(place: int) -> None:
    late = late_stores(parse(_kernel("", place)), {8}, between_ctas=True)
    assert late is not None
    memory = np.arange(100, 132, dtype=np.uint32)
    consan.launch(consan.Kernel(late.text, entry="k"), 1, 1, [memory], device="cpu")
    assert memory[12] == (1 if place == 0 else 101)


def _guard() -> consan.Report:
    spec = twin_file.read(GUARD)
    return consan.launch(twin_file.kernel(GUARD, racy=True), spec.grid, spec.block, spec.parameters(spec.fresh_args()), device="cpu")


def test_a_race_behind_two_looks_is_an_error() -> None:
    report = _guard()
    assert [each.kind for each in report.findings if each.severity == "error"] == ["global-race"]
    assert "fence.sc" in report.findings[0].fix
    assert "performed behind the load" in report.findings[0].message


def test_without_late_stores_it_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossings, "late_stores", lambda *_, **__: None)
    assert [each.severity for each in _guard().findings] == ["warning"]
