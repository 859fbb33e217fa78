"""`consan ptx --effects`: each instruction with what consan takes it to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.__main__ import main
from consan.commands.parts.effects import FAMILIES, with_effects
from consan.instrument.isa import ROWS
from consan.instrument.ptx import parse

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;
    ld.param.u64 %rd1, [p];
    ld.global.v2.u32 {%r1, %r2}, [%rd1+16];
    @%p st.release.gpu.global.u32 [%rd1], %r2;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r3];
    mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0;
    bar.sync 0;
    multimem.st.global.f32 [%rd1], %r2;
    ret;
}
"""
SAID = {
    "ld.param.u64 %rd1, [p];": [],
    "ld.global.v2.u32 {%r1, %r2}, [%rd1+16];": ["reads 8 bytes of global memory at [%rd1+16] (.weak)"],
    "@%p st.release.gpu.global.u32 [%rd1], %r2;": [
        "writes 4 bytes of global memory at [%rd1] (.release.gpu)",
        "release at .gpu scope",
    ],
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r3];": [
        "reads 64 bytes of global memory at [%rd1], through the async proxy",
        "writes 64 bytes of shared::cluster memory at [%r1], through the async proxy",
        "reads and writes 8 bytes of shared::cluster memory at [%r3]",
        "asynchronous: complete when a phase of the mbarrier is",
    ],
    "mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0;": [
        "reads 8 bytes of shared memory at [%r3] (.acquire.cta)",
        "waits for a phase of an mbarrier; where the result is true, is ordered behind the arrivals",
        "acquire at .cta scope",
    ],
    "bar.sync 0;": [
        "arrives at a barrier of the CTA, waits there for the others, and is ordered behind what they did before",
        "acquire, release at .cta scope",
    ],
    "multimem.st.global.f32 [%rd1], %r2;": [
        "writes 4 bytes of global memory at [%rd1] (.weak)",
        "modelled in part: a kernel that executes it is `incomplete`",
    ],
    "ret;": [],
}


def test_under_each_instruction_is_what_it_does() -> None:
    lines = with_effects(parse(TEXT)).splitlines()
    assert [line for line in lines if not line.startswith("        // ")] == TEXT.splitlines()
    said: dict[str, list[str]] = {}
    last = ""
    for line in lines:
        if line.startswith("        // "):
            said[last].append(line.strip().removeprefix("// "))
        else:
            last = line.strip()
            said[last] = []
    assert {name: said[name] for name in SAID} == SAID


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(TEXT.replace("    multimem.st.global.f32 [%rd1], %r2;\n", ""))
    assert main(["ptx", "--effects", str(path)]) == 0
    assert "        // release at .gpu scope\n" in capsys.readouterr().out
    assert main(["ptx", str(path), "--show", "effects"]) == 0
    assert "        // release at .gpu scope\n" in capsys.readouterr().out


def test_every_form_that_is_checked_has_an_effect() -> None:
    """By its opcode alone, without an instruction: accesses, or words for its family."""
    silent = {"mbarrier.pending_count", "clusterlaunchcontrol.query_cancel"}  # read registers
    rows = [row for row in ROWS if row.status in ("checked", "recorded") and not row.touches and not row.flow and row.name not in silent]
    without = {row.name for row in rows if not ({(row.family, row.action), (row.family, "")} & FAMILIES.keys() or row.ordering)}
    assert without == set()
