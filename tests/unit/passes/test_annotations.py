"""Annotations of consan.h in PTX: what the reader makes of them, what regions leave out, and what a report lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import consan
from consan.instrument.functions.annotated import described, ignored
from consan.instrument.isa import lookup
from consan.instrument.ptx import Module, parse, print_module
from consan.instrument.record import record
from consan.instrument.record.families.global_memory import Mode
from consan.toolchain.nvrtc import compile_ptx

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
BODY = """
.visible .entry k(.param .u64 p) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [p];
    // consan_ignore_begin;
    st.global.u32 [%rd1], 1;
    // consan_ignore_end;
    // consan_release [%rd1];
    // consan_acquire [%rd1+4]; and the rest of the line
    // consan_releases nothing
    st.global.u32 [%rd1+4], 1;
    ret;
}
"""


def _module(body: str = BODY) -> Module:
    return parse(HEADER + body)


def _opcodes(module: Module) -> list[str]:
    return [each.opcode for each in module.functions[0].instructions()]


def test_a_comment_of_the_header_is_an_instruction_of_its_place() -> None:
    module = _module()
    annotated = ["consan_ignore_begin", "st.global.u32", "consan_ignore_end", "consan_release", "consan_acquire"]
    assert _opcodes(module) == ["ld.param.u64", *annotated, "st.global.u32", "ret"]
    assert print_module(module) == HEADER + BODY
    assert all(lookup(each.parts) is not None for each in module.functions[0].instructions())


@pytest.mark.parametrize(
    "line",
    ["// consan_release;", "// consan_ignore_begins;", "/* consan_ignore_begin; */", "// see consan_release [%rd1];"],
)
def test_other_comments_are_comments(line: str) -> None:
    body = BODY.replace("// consan_releases nothing", line)
    assert _opcodes(_module(body)) == _opcodes(_module())


def test_a_comment_between_functions_is_one() -> None:
    module = _module("// consan_ignore_begin;\n" + BODY.replace("{\n", "{ // consan_ignore_end;\n", 1))
    assert len(module.functions) == 1


def test_a_region_leaves_out_what_is_between_its_ends() -> None:
    function = _module().functions[0]
    stores = [each for each in function.instructions() if each.opcode.startswith("st")]
    assert [each.start in ignored(function) for each in stores] == [True, False]


@pytest.mark.parametrize(
    ("gone", "other"), [("ignore_end", "consan_ignore_begin"), ("ignore_begin", "consan_ignore_end")], ids=["no end", "no begin"]
)
def test_a_region_without_one_of_its_ends_leaves_out_nothing(gone: str, other: str) -> None:
    module = _module(BODY.replace(f"    // consan_{gone};\n", ""))
    assert ignored(module.functions[0]) == frozenset()
    said = described(module, module.functions[0])[-1]
    assert said.startswith(f"{other} at PTX line ")
    assert said.endswith(f"has no consan_{gone} in its function: it leaves nothing out")


def test_a_module_with_orders_is_recorded_with_clocks() -> None:
    one = BODY.replace("consan_release [", "consan [")
    modes = [record(HEADER + body, global_races=True).kernels[0].mode for body in (BODY, one, one.replace("consan_acquire [", "consan ["))]
    assert modes == [Mode.SYNCED, Mode.SYNCED, Mode.ALONE]


KERNEL = """#include <consan.h>
extern "C" __global__ void k(unsigned* p) {
    consan_ignore_begin();
    p[0] = blockIdx.x;
    %s
}
"""


def _check(end: str, **options: str) -> consan.Report:
    return consan.launch(consan.Kernel(KERNEL % end, entry="k"), 2, 32, [np.zeros(1, np.uint32)], device="cpu", **options)


def test_the_report_lists_the_users_lines() -> None:
    report = _check("consan_ignore_end(); consan_release(p);")
    assert report.verdict == "clean"
    (kernel,) = report.kernels
    said = [each.replace(str(Path.cwd()), "") for each in kernel.annotations]
    assert [each.rpartition("/")[2] for each in said] == ["kernel.cu:5", "kernel.cu:5 are not compared"]
    assert "annotated:  k: release at " in str(report)


def test_a_region_without_an_end_is_said_and_leaves_the_race() -> None:
    report = _check("")
    assert {finding.kind for finding in report.findings} == {"data-race", "global-race"}
    assert "consan_ignore_begin at " in str(report)


def test_the_header_is_found_and_adds_no_instruction() -> None:
    assert (Path(consan.include_dir()) / "consan.h").is_file()
    annotated = compile_ptx(KERNEL % "consan_ignore_end(); consan_release(p); consan_acquire(p);").ptx
    plain = compile_ptx(KERNEL.replace("consan_ignore_begin();", "") % "").ptx
    kept = [[each.opcode for each in parse(text).functions[0].instructions()] for text in (annotated, plain)]
    assert [each for each in kept[0] if not each.startswith("consan_")] == kept[1]


def test_called_hooks_do_not_follow_annotations() -> None:
    report = _check("consan_ignore_end();", engine="inline")
    assert report.verdict == "incomplete"
