"""Which instructions need a suffix of the target, against ptxas."""

from __future__ import annotations

import pytest

from consan._errors import ConsanError, UsageError
from consan.instrument.isa.features import missing_target
from consan.instrument.ptx import parse
from consan.launching.source import read_module
from consan.toolchain.assemble import assemble

ENTRY = """.version 9.0
.target {target}
.address_size 64
.visible .entry k() {{ .reg .b8 %b; .reg .b16 %h<3>; .reg .b32 %r<10>; .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .b128 %q;
.shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
{instruction}
ret; }}
"""
LOAD = "cp.async.bulk.tensor.{}.mbarrier::complete_tx::bytes{} [s], [%rd1, {{{}}}], [bar]{};"
ROWS, OFFSETS = "%r1, %r2, %r3, %r4, %r5", ", {%h1, %h2}"
CANCEL = "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes"
# Instruction -> the suffixes with which sm_100 has it.
INSTRUCTIONS = {
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;": "af",
    "tcgen05.fence::before_thread_sync;": "af",
    LOAD.format("1d.shared::cta.global", "", "%r1", ""): "",
    LOAD.format("1d.shared::cta.global", ".cta_group::1", "%r1", ""): "af",
    LOAD.format("2d.shared::cta.global.tile::gather4", "", ROWS, ""): "",
    LOAD.format("2d.shared::cluster.global.tile::gather4", "", ROWS, ""): "af",
    LOAD.format("3d.shared::cta.global.im2col::w", "", "%r1, %r2, %r3", OFFSETS): "",
    LOAD.format("3d.shared::cluster.global.im2col::w", "", "%r1, %r2, %r3", OFFSETS): "af",
    LOAD.format("3d.shared::cta.global.im2col::w::128", "", "%r1, %r2, %r3", OFFSETS): "af",
    f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {{{ROWS}}}], [s];": "af",
    f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd1, {{{ROWS}}}];": "af",
    f"{CANCEL}.b128 [%rd1], [%rd2];": "",
    f"{CANCEL}.multicast::cluster::all.b128 [%rd1], [%rd2];": "af",
    "setmaxnreg.inc.sync.aligned.u32 96;": "af",
    "redux.sync.min.f32 %f1, %f2, -1;": "af",
    "redux.sync.min.s32 %r1, %r2, -1;": "",
    "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;": "",
    "cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2;": "af",
    "cvt.rn.satfinite.e2m1x2.f32 %b, %f1, %f2;": "af",
    "cvt.rn.f16x2.e3m2x2 %r1, %h1;": "af",
    "cvt.rn.bf16x2.ue8m0x2 %r1, %h1;": "af",
    "cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;": "a",
    "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;": "a",
    "add.rn.f32x2 %rd0, %rd1, %rd2;": "",
    "ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1];": "",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [s];": "af",
}


def assembles(instruction: str, target: str) -> bool:
    try:
        assemble(ENTRY.format(target=target, instruction=instruction), target)
    except ConsanError:
        return False
    return True


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_the_suffixes_are_those_of_ptxas(instruction: str) -> None:
    wanted = INSTRUCTIONS[instruction]
    assert [assembles(instruction, f"sm_100{suffix}") for suffix in ("", "f", "a")] == [not wanted, wanted != "a", True]
    found = missing_target(parse(ENTRY.format(target="sm_100", instruction=instruction)))
    assert (found is not None) == bool(wanted)
    if found is not None:
        assert found[1].partition("; ")[0].endswith(".target " + " or ".join(f"sm_100{suffix}" for suffix in wanted))
    assert missing_target(parse(ENTRY.format(target="sm_100a", instruction=instruction))) is None


def test_a_file_without_the_suffix_is_bad_input() -> None:
    with pytest.raises(UsageError) as caught:
        read_module(ENTRY.format(target="sm_100", instruction="tcgen05.wait::ld.sync.aligned;"), "k.ptx")
    assert str(caught.value) == "k.ptx:6: 'tcgen05.wait::ld.sync.aligned' needs .target sm_100a or sm_100f; the module says sm_100"


@pytest.mark.parametrize(
    ("instruction", "target", "wanted"),
    [
        ("tcgen05.wait::ld.sync.aligned;", "sm_90a", "sm_100a or sm_100f"),
        ("tcgen05.wait::ld.sync.aligned;", "sm_120a", "sm_100a or sm_100f"),
        (f"{CANCEL}.b128 [%rd1], [%rd2];", "sm_90a", "sm_100 or later"),
        (f"{CANCEL}.b128 [%rd1], [%rd2];", "sm_120", ""),
    ],
)
def test_targets_that_lack_an_instruction_with_any_suffix(instruction: str, target: str, wanted: str) -> None:
    assert assembles(instruction, target) == (not wanted)
    found = missing_target(parse(ENTRY.format(target=target, instruction=instruction)))
    assert (found[1].partition(".target ")[2] if found else "") == (f"{wanted}; the module says {target}" if wanted else "")
