"""Native programs whose launches are recorded. The made-up driver writes a record of the virtual machine."""

from __future__ import annotations

import pytest
from native_case import STATUS, Case, options

from consan.instrument.record import module
from consan.native.build import compiler
from consan.options import INLINE, RECORD
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Report
from consan.session.variables import keeps_state

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def engines(report: Report) -> dict[str, int]:
    return {kernel.engine: kernel.launches for kernel in report.kernels if kernel.launches}


@pytest.mark.parametrize("loader", ["cuModuleLoadData", "cuLibraryLoadData"])
@pytest.mark.parametrize("launcher", ["cuLaunchKernel", "cuLaunchKernelEx"])
def test_each_launch_is_recorded_and_judged(launcher: str, loader: str, case: Case) -> None:
    status, report, handed = case.run("asked", loader, case.image("ptx"), launcher, "again", "again")
    assert (status, report.verdict, engines(report)) == (STATUS, VIOLATIONS, {"record": 3})
    assert [(finding.kind, finding.ctas, finding.count) for finding in report.findings] == [("data-race", 4, 3 * 4 * 256 * 255)]
    assert handed == [f"{loader} elf that records", *[f"{launcher} sums"] * 3]
    assert not report.uninstrumented


@pytest.mark.parametrize("compact", [True, False], ids=["compact", "full"])
@pytest.mark.parametrize("image", ["clean", "ptx"])
def test_both_kinds_of_logs(image: str, compact: bool, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT", compact)
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image(image), given=options(engine=RECORD))
    assert (report.verdict, engines(report)) == (CLEAN if image == "clean" else VIOLATIONS, {"record": 1})
    assert sum(finding.count for finding in report.findings) == (0 if image == "clean" else 4 * 256 * 255)


def test_a_launch_in_another_context_takes_the_programs_own_kernel(case: Case) -> None:
    """The variables that say where the log is are those of the first context."""
    words = "asked", "cuLibraryLoadData", case.image("clean"), "cuLaunchKernel", "context", "again", "again"
    status, report, handed = case.run(*words)
    assert (status, report.verdict, engines(report)) == (STATUS, INCOMPLETE, {"record": 1})
    assert report.incomplete == ("2 launches of sums ran unchecked: in another context or on another device",)
    assert handed == ["cuLibraryLoadData elf that records", "cuLaunchKernel sums", "cuModuleLoadDataEx text", *["cuLaunchKernel sums"] * 2]


def test_a_process_that_dies_in_a_launch(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), FAKE_CUDA_DIES="1")
    assert (status, report.verdict, report.findings) == (128 + 9, INCOMPLETE, ())
    assert any("before consan had read its counts" in reason for reason in report.incomplete)


def test_hooks_are_called_where_they_are_asked_for(case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), given=options(engine=INLINE))
    assert (report.verdict, engines(report)) == (VIOLATIONS, {"inline": 1})


@pytest.mark.parametrize(
    ("how", "words", "ran"),
    [
        ("asked", ("cuLaunchKernel", "capture", "again"), {"record": 1}),
        ("asked", ("cuLaunchKernelEx", "graph"), {"record": 1, "inline": 4}),
        ("threads", ("cuLaunchKernel",), {"inline": 1}),
        ("asked", ("cuLaunchCooperativeKernelMultiDevice",), {"inline": 2}),
    ],
    ids=["a launch into a graph", "a graph", "a thread's default stream", "several devices"],
)
def test_what_no_launch_follows_takes_hooks(how: str, words: tuple[str, ...], ran: dict[str, int], case: Case) -> None:
    status, report, handed = case.run(how, "cuModuleLoadData", case.image("ptx"), *words, FAKE_CUDA_RING="")
    assert (status, engines(report)) == (STATUS, ran)
    assert "cuModuleLoadDataEx elf with hooks" in handed
    assert not report.incomplete


def test_a_launch_that_the_driver_refuses_is_none(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), FAKE_CUDA_RECORDS="/no/such/folder")
    assert (status, report.verdict, engines(report)) == (5, INCOMPLETE, {}), "the program ends at the driver's error"


def test_a_handle_that_consan_has_not_seen_is_known_by_its_name(case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "unseen", "again")
    assert (engines(report), report.uninstrumented, report.incomplete) == ({"record": 2}, (), ())


@pytest.mark.slow
def test_threads(case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "threads")
    assert (report.verdict, engines(report)) == (VIOLATIONS, {"record": 401})


def test_a_module_with_a_variable_takes_hooks() -> None:
    kernel = ".visible .entry k() {{ .reg .b64 %r; mov.u64 %r, {}; ret; }}\n"
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    assert keeps_state(head + ".visible .global .u32 count;\n" + kernel.format("count")) == "count"
    assert keeps_state(head + ".const .u32 table[2] = {1, 2};\n" + kernel.format("table")) == "table"
    assert keeps_state(head + ".global .u32 unused;\n" + kernel.format("0")) == ""
    assert keeps_state(head + ".global .align 1 .b8 $str[3] = {65, 66, 0};\n" + kernel.format("$str")) == ""
    assert keeps_state(head + ".shared .u32 tile[4];\n" + kernel.format("tile")) == ""
