"""Native programs whose launches are recorded. The made-up driver writes a record of the virtual machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from native_case import STATUS, Case, options

from consan.instrument.record import module
from consan.native import calls
from consan.options import INLINE, RECORD
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Report
from consan.session.framework_launch import FrameworkLaunch
from consan.session.frameworks import Frameworks
from consan.session.modules.prepared import Prepared
from consan.toolchain.host_library import C

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def _cupti(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CUPTI of the made-up driver: no other knows its streams."""
    monkeypatch.setattr(calls, "libraries", lambda: iter([str(case.folder / "libcupti.so")]))


def engines(report: Report) -> dict[str, int]:
    launches: dict[str, int] = {}
    for kernel in report.kernels:
        if kernel.launches:
            launches[kernel.engine] = launches.get(kernel.engine, 0) + kernel.launches
    return launches


@pytest.mark.parametrize("loader", ["cuModuleLoadData", "cuLibraryLoadData"])
@pytest.mark.parametrize("launcher", ["cuLaunchKernel", "cuLaunchKernelEx"])
def test_each_launch_is_recorded_and_judged(launcher: str, loader: str, case: Case) -> None:
    status, report, handed = case.run("asked", loader, case.image("ptx"), launcher, "again", "again")
    assert (status, report.verdict, engines(report)) == (STATUS, VIOLATIONS, {"record": 3}), report.incomplete
    assert [(finding.kind, finding.ctas, finding.count) for finding in report.findings] == [("data-race", 4, 3 * 4 * 256 * 255)]
    assert handed == [f"{loader} elf that records", *[f"{launcher} sums"] * 3]
    assert not report.uninstrumented


@pytest.mark.parametrize("packed", ["packed", ""])
def test_global_memory_is_proven_or_looked_at(packed: str, case: Case) -> None:
    """The first launch has the parameters for which memory is apart, in pointers or in a buffer."""
    status, report, handed = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", packed, "again", "again")
    assert (status, report.verdict, engines(report)) == (STATUS, CLEAN, {"record": 3}), report.incomplete
    assert "global-memory" in report.checked, report.not_checked
    assert handed[0] == "cuModuleLoadData elf that records"
    assert sum(kernel.global_proven for kernel in report.kernels) == 3 * (4 * 256 + 4)
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "overlap", packed, "again", "again")
    assert any("sums: 2 of 3 launches: only the first launches" in area for area in report.not_checked), report.not_checked


def test_a_launch_that_is_not_proven_takes_another_form(case: Case) -> None:
    status, report, handed = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "again", FAKE_OVERLAPS="1")
    assert (status, report.verdict, engines(report)) == (STATUS, CLEAN, {"record": 2}), report.incomplete
    assert handed.count("cuModuleLoadDataEx elf that records") == 1
    assert any("sums: 1 of 2 launches: only the first launches" in area for area in report.not_checked), report.not_checked


@pytest.mark.parametrize("image", ["clean", "ptx"])
@pytest.mark.parametrize("compact", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["compact", "full"])
def test_both_kinds_of_logs(image: str, compact: bool, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT", compact)
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image(image), given=options(engine=RECORD))
    assert (report.verdict, engines(report)) == (CLEAN if image == "clean" else VIOLATIONS, {"record": 1})
    assert sum(finding.count for finding in report.findings) == (0 if image == "clean" else 4 * 256 * 255)


@pytest.mark.parametrize(("image", "long"), [("clean", 2), ("ptx", 6)])
def test_a_launch_that_is_known_takes_the_short_way(image: str, long: int, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parameters say what it does, and a launch with these was checked: it has no log. One with a finding is no such launch."""
    took, recorded = list[str](), Frameworks.recorded

    def counted(frameworks: Frameworks, prepared: Prepared, launch: FrameworkLaunch) -> Any:
        took.append(launch.entry)
        return recorded(frameworks, prepared, launch)

    monkeypatch.setattr(Frameworks, "recorded", counted)
    words = "asked", "cuModuleLoadData", case.image(image), "cuLaunchKernel", "packed", *["again"] * 5
    status, report, handed = case.run(*words)
    assert (status, engines(report), len(took)) == (STATUS, {"record": 6}, long), report.incomplete
    assert handed.count("cuLaunchKernel sums") == 6
    assert report.verdict == (CLEAN if image == "clean" else VIOLATIONS)
    assert sum(finding.count for finding in report.findings) == (0 if image == "clean" else 6 * 4 * 256 * 255)


def test_a_process_that_dies_in_a_launch(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), FAKE_CUDA_DIES="1")
    assert (status, report.verdict, report.findings) == (128 + 9, INCOMPLETE, ())
    assert any("before consan had read its counts" in reason for reason in report.incomplete)


def test_hooks_are_called_where_they_are_asked_for(case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), given=options(engine=INLINE))
    assert (report.verdict, engines(report)) == (VIOLATIONS, {"inline": 1})


@pytest.mark.parametrize(
    ("how", "words", "recorded", "why"),
    [
        ("asked", ("cuLaunchKernelEx", "graph"), 1, "4 launches of sums ran unchecked: the program adds them to a graph node by node"),
        ("threads", ("cuLaunchKernel",), 0, "1 launch of sums ran unchecked: in a thread's own default stream"),
        ("asked", ("cuLaunchCooperativeKernelMultiDevice",), 0, "2 launches of sums ran unchecked: by one call for several devices"),
    ],
    ids=["nodes of a graph", "a thread's default stream", "several devices"],
)
def test_what_no_log_can_follow_runs_as_it_is(how: str, words: tuple[str, ...], recorded: int, why: str, case: Case) -> None:
    status, report, handed = case.run(how, "cuModuleLoadData", case.image("clean"), *words)
    assert (status, report.verdict, engines(report)) == (STATUS, INCOMPLETE, {"record": recorded} if recorded else {})
    assert any(reason.startswith(why) for reason in report.incomplete), report.incomplete
    assert handed.count("cuModuleLoadDataEx text") == 1, "the program's own kernel"


CAPTURED = ("stream1", "begin", "again", "end", "run", "run")


@pytest.mark.parametrize(("image", "verdict"), [("clean", CLEAN), ("ptx", VIOLATIONS)])
@pytest.mark.parametrize("keeps", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_captured_launch_is_recorded(image: str, verdict: str, keeps: bool, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.folder)
    words = "asked", "cuModuleLoadData", case.image(image), "cuLaunchKernel", *CAPTURED
    status, report, handed = case.run(*words, given=options(keep_histories=keeps))
    assert (status, report.verdict, engines(report)) == (STATUS, verdict, {"record": 3}), report.incomplete
    assert sum(finding.count for finding in report.findings) == (0 if image == "clean" else 3 * 4 * 256 * 255)
    assert handed.count("cuGraphLaunch sums") == 2
    assert not report.uninstrumented, "consan's own nodes are not listed"


@pytest.mark.parametrize("drops", ["consan_node_receipt", "consan_node_begins"])
def test_a_graph_whose_own_nodes_do_not_run_is_incomplete(drops: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.folder)
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *CAPTURED
    _, report, _ = case.run(*words, given=options(keep_histories=True), FAKE_CUDA_DROPS=drops)
    assert report.verdict == INCOMPLETE
    assert any("sums left no log" in reason for reason in report.incomplete), report.incomplete


def test_a_node_that_the_program_makes_larger_has_no_log(case: Case) -> None:
    """It would write behind its log: the kernel as it was takes its place, though the program names that of the node."""
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *CAPTURED, "larger", "run"
    status, report, handed = case.run(*words)
    assert (status, report.verdict) == (STATUS, INCOMPLETE), str(handed)
    assert handed.count("cuGraphLaunch sums") == 3
    assert handed.count("cuModuleLoadDataEx text") == 1
    assert any("3 launches of sums ran unchecked: the program changes parameters" in why for why in report.incomplete), report.incomplete
    assert not report.findings, "nothing has written the log"


def test_a_process_that_dies_behind_a_graph(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.folder)
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *CAPTURED, "kill"
    _, report, _ = case.run(*words, given=options(keep_histories=True))
    assert report.verdict == INCOMPLETE
    assert any("sums left no log" in reason for reason in report.incomplete), report.incomplete


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


def test_a_module_with_a_variable_is_recorded(case: Case, tmp_path: Path) -> None:
    """Its node in a graph, whose module is another one, uses the variable of the recorded one, and so does the kernel as it was."""
    text = Path(case.image("clean")).read_text()
    used = "{ .reg .u32 t; ld.global.u32 t, [table]; }\n\tret;"
    (tmp_path / "table.ptx").write_text(text.replace(".visible .entry", ".global .u32 table[2];\n.visible .entry").replace("ret;", used))
    words = ("asked", "cuModuleLoadData", str(tmp_path / "table.ptx"), "cuLaunchKernel", *CAPTURED, "table", "7", "graph")
    status, report, handed = case.run(*words)
    assert (status, report.verdict, engines(report)) == (STATUS, INCOMPLETE, {"record": 3}), report.incomplete
    assert "table 7" not in handed, "no form but the recorded one has a table that the program writes"


@pytest.mark.parametrize("image", ["clean", "ptx"])
def test_histories_are_kept(image: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.folder)
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image(image), "cuLaunchKernel", given=options(keep_histories=True))
    (kept,) = (note for note in report.notes if note.startswith("the histories were kept: consan replay "))
    assert (case.folder / kept.split()[-1]).exists(), report.notes
