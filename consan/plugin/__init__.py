"""The pytest plugin (entry point `pytest11`): options, markers, the fixture `consan`, and the hooks.

With `--consan` every test is sanitized. A session is open from before the first conftest until pytest ends, and
each test's findings are taken after it (consan/plugin/watch.py). A passing test with findings fails in its call phase, so that
xfail, `-x`, `--lf` and reruns treat it like any failure. Findings travel in pytest's own reports, so that under xdist the
printing process also collects them (consan/plugin/ledger.py).

Importing this module imports only pytest and the file of keys, because every pytest run on a machine with consan does it. All other
imports are late for that reason.

Not handled: concurrent launches of several tests in threads of one process: nothing says whose they are. Launches by
`consan.launch` or in `consan.check()` are judged by the test, which has the report.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from consan import late
from consan.plugin.keys import CHECKING, LEDGER, WATCH, setting

if TYPE_CHECKING:
    from consan.plugin.fixture import Consan

# Name of the option and of its ini setting, whether it is a switch, help text.
OPTIONS: Final = (
    ("consan", True, "sanitize every test: a passing test with findings fails"),
    ("consan_device", False, "where kernels run: auto, gpu or cpu"),
    ("consan_seed", False, "seed of the schedule"),
    ("consan_strict", True, "warnings and incomplete verdicts fail a test too"),
    ("consan_allow_incomplete", True, "an incomplete verdict neither marks nor fails a test"),
    ("consan_baseline", False, "a stored run: findings that it has do not count"),
    ("consan_suppress", False, "a file of suppressions"),
    ("consan_skip", False, "kinds of findings that do not count, as data-race,scope"),
    ("consan_checks", False, "the kinds of findings that count: no others do"),
    ("consan_notes", True, "print findings of severity note in full; by default they are only counted"),
    ("consan_details", True, "print all of each report, not a screen of it"),
    ("consan_mutate", True, "say which barriers, waits and fences no test would notice the absence of (on the virtual machine)"),
    ("consan_report", False, "write one report of all tests: .json, .sarif, .html, or text"),
)
MARKERS: Final = (
    "consan(expect=KIND): the kernels of this test must have findings of this kind (or of each kind of a tuple), or the test fails",
    "consan_allow(KIND, reason=..., kernel='*', source='*'): findings of this kind do not count in this test",
)
# Letters for passing tests that were racy, or not fully checked.
_INCOMPLETE: Final = ("I", "INCOMPLETE")
LETTERS: Final = {"racy": ("R", "RACY"), "incomplete": _INCOMPLETE}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare each option and its ini setting."""
    group = parser.getgroup("consan", "races in GPU kernels (consan)")
    for name, switch, help in OPTIONS:  # noqa: A001
        kind: dict[str, Any] = {"action": "store_true"} if switch else {"metavar": name.rpartition("_")[2].upper()}
        group.addoption("--" + name.replace("_", "-"), dest=name, default=None, help=help, **kind)
        twin: Literal["bool", "string"] = "bool" if switch else "string"
        parser.addini(name, help, type=twin, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start before the first conftest, which may import CuPy."""
    _leave_assertions(early_config)
    _begin(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers. Start here if the plugin was loaded too late for the first hook."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    _begin(config)
    if setting(config, "consan_mutate"):
        config.pluginmanager.register(late.plugin_mutate.Score(config))
    if LEDGER not in config.stash and (CHECKING in config.stash or setting(config, "consan_report")):
        late.plugin_ledger.open_ledger(config)


def _leave_assertions(config: pytest.Config) -> None:
    """Pytest rewrites the assertions of a plugin's whole package, which takes seconds for consan's where it cannot keep the result."""
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set[str]()).discard("consan")


def _begin(config: pytest.Config) -> None:
    if CHECKING in config.stash or not setting(config, "consan"):
        return
    config.stash[CHECKING] = checking = late.plugin_watch.Checking(config)
    config.add_cleanup(checking.close)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Header lines: what is checked, and the limit on memory."""
    return config.stash[CHECKING].describe() if CHECKING in config.stash else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An invalid marker ends the run at once, with one line."""
    marked = [item for item in items if item.get_closest_marker("consan") or item.get_closest_marker("consan_allow")]
    if marked:
        for item in marked:
            late.plugin_markers.read(item)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Launches in setup fixtures belong to the test."""
    checking = item.config.stash.get(CHECKING, None)
    if checking is not None:
        item.stash[WATCH] = checking.watch(item)
    return (yield from _watched(item, "setup"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run the test. A passing test with findings fails here."""
    return (yield from _watched(item, "call"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Launches in teardown fixtures: findings are an error of the teardown."""
    return (yield from _watched(item, "teardown"))


def _watched(item: pytest.Item, when: str) -> Generator[None, Any, Any]:
    try:
        result = yield
    except BaseException as error:
        watch = item.stash.get(WATCH, None)
        if watch is not None:
            watch.failed(when, error)
        raise
    watch = item.stash.get(WATCH, None)  # the fixture may have created it
    if watch is not None:
        watch.passed(when)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the findings to pytest's report of the phase."""
    report = yield
    watch = item.stash.get(WATCH, None)
    if watch is not None:
        watch.publish(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """The letters for consan's own failures, and for tests that pass with gaps."""
    if report.passed and report.when == "call" and getattr(report, "consan_gap", False) and not hasattr(report, "wasxfail"):
        return "passed", *_INCOMPLETE
    letters = LETTERS.get(getattr(report, "consan_failure", None) or "")
    if letters is None or not report.failed:
        return None
    return "failed" if report.when == "call" else "error", *letters


@pytest.fixture
def consan(request: pytest.FixtureRequest) -> Consan:
    """Sanitized launches: `with consan.check() as report: ...`, `consan.assert_clean(kernel, grid, block, args)`, `consan.launch(...)`."""
    return late.plugin_fixture.for_test(request.node)
