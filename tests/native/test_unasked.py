"""Launches that a native program makes without a question to the server (consan/native/unasked.py)."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from native_case import STATUS, Case, break_interposer
from planted import plant

from consan.native import calls, client, unasked
from consan.native.launches import RecordedModules
from consan.native.wire import Message
from consan.reports.model import CLEAN, INCOMPLETE, Report
from consan.toolchain.host_library import C
from consan.toolchain.nvrtc import compile_ptx

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
KNOWN = ("again",) * 6  # behind these nothing is asked
SILENT = 'extern "C" __global__ void sums(const float *x, float *out) { int at = blockIdx.x * 256 + threadIdx.x; out[at] = x[at] + 1; }'


class Questions:
    """Counts the launches that the server is asked for."""

    def __init__(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case, self.asked = case, 0
        launch = RecordedModules.launch

        def counted(self_: RecordedModules, *given: object) -> Message:
            self.asked += 1
            return launch(self_, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(RecordedModules, "launch", counted)
        monkeypatch.setattr(calls, "libraries", lambda: iter([str(case.folder / "libcupti.so")]))

    def of(
        self, *steps: str, launcher: str = "cuLaunchKernel", image: str = "", ends: int = STATUS, loader: str = "cuModuleLoadData"
    ) -> int:
        """The questions of a program, whose launches are all checked, and counted."""
        self.asked = 0
        words = ("asked", loader, image or self.case.image("clean"), launcher, *steps)
        status, self.report, self.handed = self.case.run(*words)
        assert status == ends, self.report.incomplete
        return self.asked


def launches(report: Report) -> int:
    return sum(kernel.launches for kernel in report.kernels)


@pytest.fixture
def questions(case: Case, monkeypatch: pytest.MonkeyPatch) -> Questions:
    return Questions(case, monkeypatch)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kernel that records nothing."""
    path = tmp_path_factory.mktemp("silent") / "silent.ptx"
    path.write_text(compile_ptx(SILENT).ptx)
    return str(path)


@pytest.fixture(params=["has a log", "records nothing"])
def image(request: pytest.FixtureRequest, case: Case, silent: str) -> str:
    return case.image("clean") if request.param == "has a log" else silent


@pytest.mark.parametrize("launcher", ["cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"])
def test_a_launch_that_is_known_asks_nobody(launcher: str, image: str, questions: Questions) -> None:
    asked = questions.of(*KNOWN, launcher=launcher, image=image)
    assert asked < len(KNOWN)
    assert questions.of(*KNOWN * 10, launcher=launcher, image=image) == asked
    assert (questions.report.verdict, launches(questions.report)) == (CLEAN, 1 + 10 * len(KNOWN)), questions.report.incomplete
    assert questions.handed.count(f"{launcher} sums") == 1 + 10 * len(KNOWN)


# A step makes the next launch differ, or comes before it; the fault hides it.
DIFFERENT = {
    "another kernel": ("reload", "cuLaunchKernel", ("!= (uintptr_t)function)", "== 0)")),
    "another context": ("context", "cuLaunchKernel", ("copy.context != shape->context ||", "")),
    "another stream": ("capture", "cuLaunchKernel", ("copy.stream != (uintptr_t)stream ||", "")),
    "clusters": ("attribute", "cuLaunchKernelEx", ("|| memcmp(copy.sizes, shape, sizeof copy.sizes) != 0", "")),
    "a dependent launch": ("dependent", "cuLaunchKernelEx", ("|| shape->programmatic", "")),
    "an event by an attribute": ("event7", "cuLaunchKernelEx", ("|| shape->records", "")),
    "parameters": ("overlap", "cuLaunchKernel", ("!has_values(&copy, arguments)", "false")),
    "a call that orders streams": ("synchronize", "cuLaunchKernel", ("word == 0 ||", "")),
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with monkeypatch.context() as until:
        yield until


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_launch_that_differs_asks(name: str, questions: Questions, planted: pytest.MonkeyPatch) -> None:
    step, launcher, fault = DIFFERENT[name]
    how = {"launcher": launcher, "loader": "cuLibraryLoadData" if step == "context" else "cuModuleLoadData"}  # a module has one context
    before = questions.of(*KNOWN, **how)
    assert questions.of(*KNOWN, step, "again", **how) == before + 1
    break_interposer(planted, *fault)
    refused = 5 if step == "context" else STATUS  # by the driver, which gets the kernel of another context
    assert questions.of(*KNOWN, step, "again", ends=refused, **how) == before, "the fault is seen"


def test_no_call_is_noted_beside_launches_that_rest_on_the_order(questions: Questions, planted: pytest.MonkeyPatch) -> None:
    before = questions.of(*KNOWN)
    break_interposer(planted, "if (!noted || rest_on_order()) {", "if (!noted) {", "streams.h")
    assert questions.of(*KNOWN, "synchronize", "again") == before, "the fault is seen: else it asks once more"


# Faults of the server with which an entry stays, though what it rests on has changed.
STAYS = {
    "nothing is looked at": ("synchronize", "if self._lent and _changed(self._lent[0]):", "if False:"),
    "the order of streams": ("synchronize", "or repeated.differs()", ""),
    "shared memory": ("shares:x10000000", "peers.of_process or peers.shares or repeated.differs()", "False"),
}


@pytest.mark.parametrize("name", STAYS)
def test_the_server_takes_back_what_no_longer_holds(name: str, questions: Questions, planted: pytest.MonkeyPatch) -> None:
    step, old, new = STAYS[name]
    before = questions.of(*KNOWN)
    assert questions.of(*KNOWN, step, "again") == before + 1
    assert launches(questions.report) == len(KNOWN) + 2
    plant(planted, unasked, old, new)
    assert questions.of(*KNOWN, step, "again") == before, "the fault is seen"


def test_a_module_that_is_unloaded_takes_its_launches_along(questions: Questions, planted: pytest.MonkeyPatch) -> None:
    """The driver may give the handle of its kernel again."""
    before = questions.of(*KNOWN)
    assert questions.of(*KNOWN, "unload", "again", ends=5) == before + 1, "the driver refuses it"
    plant(planted, client, "self._recorded.forget(self._counts.unloaded(message.a))", "self._counts.unloaded(message.a)")
    assert questions.of(*KNOWN, "unload", "again") == before, "the fault is seen"


@pytest.mark.parametrize("fault", [None, ("if (result) uncount(started.unasked);", "")], ids=["", "planted"])
def test_a_launch_that_the_driver_refuses_is_none(fault: tuple[str, str] | None, case: Case, planted: pytest.MonkeyPatch) -> None:
    if fault:
        break_interposer(planted, *fault, file="launches.h")
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *KNOWN * 2
    status, report, handed = case.run(*words, FAKE_CUDA_FAILS=str(2 * len(KNOWN)))
    assert (status, handed.count("cuLaunchKernel sums")) == (5, 2 * len(KNOWN)), "the program ends at the driver's error"
    assert launches(report) == 2 * len(KNOWN) + bool(fault)


def test_threads_launch_while_entries_are_taken_back(questions: Questions) -> None:
    asked = questions.of(*KNOWN, "together")
    assert (questions.report.verdict, launches(questions.report)) == (CLEAN, 1 + len(KNOWN) + 800), questions.report.incomplete
    assert asked < 400, "most of them asked nobody"


def test_the_launches_of_a_process_that_dies_are_counted(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *KNOWN * 10, "kill")
    assert (status, report.verdict, launches(report)) == (128 + 9, INCOMPLETE, 1 + 10 * len(KNOWN))


def test_a_server_that_dies_leaves_what_is_known(case: Case) -> None:
    """The program goes on: these launches need nobody. One that is not known fails, since there is nobody to make a log."""
    case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *KNOWN)  # the record is there for the other process
    words = ("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *KNOWN, "wait", *KNOWN, "wait", "overlap", "again")
    given = {**os.environ, **case.environment, "TMPDIR": str(case.folder)}  # it leaves its folder behind
    command = [sys.executable, "-m", "consan", "run", str(case.folder / "program"), *words]
    with subprocess.Popen(command, env=given, cwd=case.folder, stdin=-1, stdout=-1, stderr=-1, text=True) as consan:
        assert consan.stdout is not None
        assert consan.stdout.readline() == "ready\n"
        consan.kill()
        rest, errors = consan.communicate("\n\n")
    assert rest == "ready\ncuLaunchKernel: error 999\n"
    assert "the consan process has gone" in errors


def test_the_table_has_an_end() -> None:
    """Many values of the parameters of one launch, long ones, and many launches."""
    table, key = unasked.UnaskedLaunches(), unasked.LaunchKey(1, 2, 0, (1,) * 10)
    pages = mmap.mmap(-1, unasked.TABLE_BYTES)
    table.lie_in(pages, 0)
    alike = [unasked.Entries(table, 0) for _ in range(9)]
    made = [sum(each.add(key, (bytes([number]),)) for number in range(200)) for each in alike]
    assert made == [32] * 8 + [0], "256 entries"
    pages[:8] = (int.from_bytes(pages[:8], "little") + 5).to_bytes(8, "little")  # as the interposer counts
    assert alike[0].take_back().launches == {(b"\0",): 5}
    assert not alike[8].add(key, (bytes(2000),))
    assert alike[8].add(key, (bytes(1800),))
    assert alike[8].add(key, (bytes(1800),)), "it is there"
    assert alike[8].take_back().launches == {}
