"""Native programs that use several devices or contexts: each has a session, with logs and streams of its own.

The made-up driver refuses what one context does with handles and memory of another one.
"""

from __future__ import annotations

from functools import partial

import pytest
from native_case import STATUS, Case
from planted import plant
from test_recorded import engines

from consan.native import calls, client, launches, orders, remote, sessions
from consan.reports.model import CLEAN, VIOLATIONS, Report
from consan.toolchain.host_library import C

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
LOADERS = {"cuLibraryLoadData": (), "cuModuleLoadData": ("reload",)}  # what a program does on the second device before it launches there


@pytest.fixture(autouse=True)
def _cupti(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "libraries", lambda: iter([str(case.folder / "libcupti.so")]))


def run(case: Case, *steps: str, image: str = "clean", loader: str = "cuLibraryLoadData") -> Report:
    """Each launch has a log on its device; `steps` come behind the first one."""
    words = ("asked", loader, case.image(image), "cuLaunchKernel", *steps)
    status, report, handed = case.run(*words, FAKE_CUDA_DEVICES="2")
    assert status == STATUS, handed
    assert not report.incomplete, report.incomplete
    assert engines(report) == {"record": 1 + steps.count("again")}, handed
    assert "cuModuleLoadDataEx text" not in handed, "the kernel as it was"
    return report


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("image", ["clean", "ptx"])
def test_each_device_is_recorded(image: str, loader: str, case: Case) -> None:
    report = run(case, "device1", "own", *LOADERS[loader], "again", "again", "again", image=image, loader=loader)
    assert report.verdict == (CLEAN if image == "clean" else VIOLATIONS)
    assert sum(finding.count for finding in report.findings) == (0 if image == "clean" else 4 * 4 * 256 * 255)


@pytest.mark.parametrize("loader", LOADERS)
def test_devices_in_turn(loader: str, case: Case) -> None:
    more = LOADERS[loader]
    assert (
        run(
            case, "device1", "own", *more, "again", "device0", "own", *more, "again", "device1", "own", *more, "again", loader=loader
        ).verdict
        == CLEAN
    )


def test_a_context_that_the_program_has_made(case: Case) -> None:
    assert run(case, "context", "again", "again").verdict == CLEAN


def launched_on_both(case: Case, *between: str, own: tuple[str, ...] = ()) -> set[str]:
    """The situations that are found."""
    steps = ("synchronize", "stream1", "again", "device1", "stream2", "device0", *between, "device1", *own, "again")
    return {finding.situation or "" for finding in run(case, *steps).findings}


@pytest.mark.parametrize(("between", "own", "found"), [((), (), {"no-device-edge"}), (("edge",), (), set()), ((), ("own",), set())])
def test_launches_of_two_devices_are_compared(between: tuple[str, ...], own: tuple[str, ...], found: set[str], case: Case) -> None:
    """At the same bytes in no order, behind an event, and at other bytes."""
    assert launched_on_both(case, *between, own=own) == found


def test_a_stream_of_the_first_device_while_the_second_is_current(case: Case) -> None:
    """A library's kernel runs in the context of the stream."""
    assert run(case, "stream1", "device1", "again", "again").verdict == CLEAN


@pytest.mark.parametrize("last", ["device1", "device0"])
def test_launches_behind_the_end_of_a_context(last: str, case: Case) -> None:
    """The library lives on, and has logs in the session that is opened anew."""
    assert run(case, "device1", "own", "again", "reset", last, "again", "again").verdict == CLEAN


IN_TURN = partial(test_devices_in_turn, "cuLibraryLoadData")
BEHIND = partial(test_launches_behind_the_end_of_a_context, "device1")
# Faults, and the test that each of them fails.
FAULTS = {
    "orders in any context": (orders, "Orders._enter", "context != self._context", "not self._context", IN_TURN),
    "the first session alone": (sessions, "ContextSessions.of", "session = first.here()", "session = first", IN_TURN),
    "variables of the first context": (sessions, "ProgramModule.within", "if session not in self._forms:", "if not self._forms:", IN_TURN),
    "the context is not known": (remote, "RemoteContexts.other", "context in (0, self.own)", "True", IN_TURN),
    "libraries end with a context": (
        launches,
        "RecordedModules.leave",
        "gone_with(context, self._known.values())",
        "list(self._known)",
        BEHIND,
    ),
    "the sessions stay": (client, "Client._collect", "self._sessions.end()", "pass", BEHIND),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted(fault: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    module, where, text, planted, test = FAULTS[fault]
    plant(monkeypatch, module, text, planted, where)
    with pytest.raises(AssertionError):
        test(case)
