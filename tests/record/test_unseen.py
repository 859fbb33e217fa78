"""What no rule follows is listed as not modelled, for the kernels that can reach it; the rest of such a kernel is recorded all the same."""

from __future__ import annotations

import numpy as np
import pytest

import consan
from consan.instrument.functions.analyse import UNKNOWN_CALL, external_calls, plan_functions
from consan.instrument.isa import lookup
from consan.instrument.ptx import parse
from consan.instrument.record import record
from consan.instrument.record.recordable import refusals
from consan.toolchain.assemble import assemble_cached

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);
.func f() { ret; }
.func g() { ret; }
.global .align 8 .u64 table[2] = {f, g};
.global .align 8 .u64 other;
.shared .align 16 .b8 s[64];
"""
REGISTERS = ".reg .b32 %r<50>; .reg .b64 %d<20>; .reg .pred %p<4>; .reg .f32 %f<9>;"
PROTOTYPE = "kind : .callprototype _ ();"


def _kernel(body: str, name: str = "k") -> str:
    return f".visible .entry {name}(.param .u64 p) {{\n{REGISTERS}\nld.param.u64 %d1, [p];\n{body}\nret;\n}}\n"


def _listed(body: str) -> tuple[list[str], str]:
    module = parse(HEAD + _kernel(body))
    plans = plan_functions(module, recorded=True)
    return [each.opcode for each in plans["k"].stats.unmodelled] + sorted(external_calls(plans["k"], plans)), refusals(plans).get("k", "")


@pytest.mark.parametrize(
    "instruction",
    [
        "sust.p.1d.b32.trap [%d1, {%r2}], %r1;",
        "sured.b.add.1d.u32.clamp [%d1, {%r2}], %r1;",
        "multimem.red.global.add.u32 [%d1], %r1;",
        "multimem.st.global.u32 [%d1], %r1;",
        "multimem.ld_reduce.global.add.u32 %r1, [%d1];",
        "fence.proxy.alias;",
        "fence.proxy.alias.acquire.sys;",
        "fence.proxy.alias.release.sys;",
    ],
)
def test_what_spares_shared_memory_or_is_known_in_part_is_listed_and_the_kernel_recorded(instruction: str) -> None:
    assert _listed(instruction) == ([instruction.split()[0].rstrip(";")], "")


WIDE = "mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r2, %r2}], [%r2], {%h1, %h1};"
# Forms of PTX 9.2 to 9.5 that no row describes.
NEWER = [
    "mbarrier.layout.shared.b64 %d2, [%r1];",
]


@pytest.mark.parametrize("instruction", NEWER)
def test_a_form_of_a_newer_version_is_listed_by_its_name(instruction: str) -> None:
    assert lookup(tuple(instruction.split()[0].rstrip(";").split("."))) is None
    listed, why = _listed(instruction)
    assert listed == [instruction.split()[0].rstrip(";")]
    assert why == f"{listed[0]} is not modelled"


@pytest.mark.parametrize("space", ["", ".global", ".shared"])
def test_a_matrix_of_wmma_is_recorded(space: str) -> None:
    registers = "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}"
    store = f"wmma.store.d.sync.aligned.row.m16n16k16{space}.f32 [%d1], {registers}, 16;"
    assert _listed(f"wmma.load.c.sync.aligned.row.m16n16k16{space}.f32 {registers}, [%d1], 16; {store}") == ([], "")


@pytest.mark.parametrize(
    "instruction",
    [
        "st.async.mmio.release.sys.global.b32 [%d1], %r1;",
        "red.async.mmio.release.sys.global.add.u32 [%d1], %r1;",
        f"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.{WIDE}",
        f"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w::128.{WIDE}",
    ],
)
def test_what_may_order_or_touch_shared_memory_is_not_recorded(instruction: str) -> None:
    listed, why = _listed(instruction)
    assert listed == [instruction.split()[0].rstrip(";")]
    assert why == f"{listed[0]} is not modelled"


@pytest.mark.parametrize(
    ("instruction", "at_once"),
    [
        ("st.async.release.gpu.b32 [%d1], %r1;", "st.release.gpu.b32 [%d1], %r1;"),
        ("@%p1 st.async.sys.release.global.b64 [%d1+8], %d2;", "@%p1 st.release.sys.global.b64 [%d1+8], %d2;"),
        ("red.async.release.sys.global.add.u32 [%d1], %r1;", "red.release.sys.global.add.u32 [%d1], %r1;"),
        ("@!%p1 red.async.release.gpu.add.s64 [%d1], -1;", "@!%p1 red.release.gpu.add.u64 [%d1], -1;"),
    ],
)
def test_an_asynchronous_store_with_a_release_is_performed_at_once(instruction: str, at_once: str) -> None:
    assert _listed(instruction) == ([], "")
    text = record(HEAD + _kernel(f"setp.eq.u64 %p1, %d1, 0; mov.b32 %r1, 1; mov.b64 %d2, 1; {instruction}")).ptx
    assert at_once in text
    assert "async.release" not in text
    assert "k" in assemble_cached(text, "sm_100a").info


@pytest.mark.parametrize(
    ("pointer", "listed"),
    [
        ("mov.u64 %d2, f;", []),
        ("mov.u64 %d3, f; mov.u64 %d4, g; selp.b64 %d2, %d3, %d4, %p1;", []),
        ("ld.global.u64 %d2, [table+8];", []),
        ("mov.u64 %d3, table; mad.wide.u32 %d3, %r1, 8, %d3; ld.global.u64 %d2, [%d3];", []),
        ("mov.u64 %d2, %d1;", [UNKNOWN_CALL]),
        ("ld.global.u64 %d2, [%d1];", [UNKNOWN_CALL]),
        ("ld.global.u64 %d2, [other];", [UNKNOWN_CALL]),
        ("mov.u64 %d2, f; @%p1 ld.global.u64 %d2, [%d1];", [UNKNOWN_CALL]),
    ],
)
def test_a_call_by_an_address_from_memory_is_listed(pointer: str, listed: list[str]) -> None:
    assert _listed(f"{pointer} {PROTOTYPE} call %d2, (), kind;") == (listed, "")


def test_a_list_of_targets_tells_what_a_call_reaches() -> None:
    assert _listed("ld.global.u64 %d2, [%d1]; kinds : .calltargets f, g; call %d2, (), kinds;") == ([], "")


def test_a_launch_from_the_device_is_listed_for_its_kernel_alone() -> None:
    launch = "{ .param .b64 a; .param .b64 b; .param .b32 r; call.uni (r), cudaLaunchDeviceV2, (a, b); }"
    assert _listed(launch) == (["cudaLaunchDeviceV2"], "")
    launched = consan.launch(
        consan.Kernel(HEAD + _kernel(launch, "launcher") + _kernel(""), entry="k"), 1, 32, [np.zeros(4, np.int32)], device="cpu"
    )
    assert launched.verdict == "clean"
    assert {kernel.name: [gap.opcode for gap in kernel.unmodelled] for kernel in launched.kernels} == {
        "launcher": ["call cudaLaunchDeviceV2"],
        "k": [],
    }


@pytest.mark.parametrize(
    ("head", "listed"),
    [
        ((".version 7.0", ".target sm_80"), []),
        ((".version 9.5", ".target sm_100f"), []),
        ((".version 99.9", ".target sm_80"), ["PTX of version 99.9 (known are 7.0 to 9.x)"]),
        ((".version 10.0", ".target sm_80"), ["PTX of version 10.0 (known are 7.0 to 9.x)"]),
        ((".version 6.5", ".target sm_75"), ["PTX of version 6.5 (known are 7.0 to 9.x)"]),
        ((".version 9.0", ".target sm_999"), ["PTX for the unknown target sm_999"]),
    ],
)
def test_a_module_of_a_version_or_target_that_is_not_known_is_incomplete(head: tuple[str, str], listed: list[str]) -> None:
    text = "\n".join((*head, ".address_size 64", _kernel("st.global.u32 [%d1], %r1;")))
    report = consan.launch(consan.Kernel(text), 1, 32, [np.zeros(4, np.int32)], device="cpu")
    assert [gap.opcode for kernel in report.kernels for gap in kernel.unmodelled] == listed
    assert report.verdict == ("incomplete" if listed else "clean")
    assert [kernel.engine for kernel in report.kernels] == ["record"]
