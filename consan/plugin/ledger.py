"""Findings of all tests: collected from pytest's reports, summed up at the end, written to `--consan-report`.

Under xdist, workers send these reports, and what they launched outside tests; the printing process writes the
file. Findings shared by tests are listed once, with the tests.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from consan import suppressions
from consan.commands.parts.output import choose_format
from consan.plugin.keys import CHECKING, LEDGER, setting
from consan.plugin.settings import settings_of, usage_errors
from consan.plugin.watch import SECTION, failure_of, line
from consan.reports.counts import plural
from consan.reports.formats import json_format
from consan.reports.formats.accesses import short
from consan.reports.formats.phrases import hidden_notes
from consan.reports.formats.render import render
from consan.reports.model import EXIT_INCOMPLETE, VIOLATIONS, RanTest, Report
from consan.reports.verdict.combination import combine
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.coverage import kernels_checked
from consan.reports.verdict.speaking.causes import causes, key

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

OUTSIDE: Final = ""  # the id for launches at import time and between tests
_SHOWN: Final = 5  # tests listed with a finding
Line = tuple[str, dict[str, bool]]  # of the summary, with its markup


class Ledger:
    """One per process. An xdist worker's ledger passes on what pytest's reports do not carry."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._path = self._destination()
        self._format = self._chosen()
        self._reports: list[Report] = []
        self._judged: dict[str, list[Report]] = {}  # reports of launches that tests judge themselves
        self._comments: dict[tuple[str, str], None] = {}
        self._gappy: set[str] = set()  # passing tests that were not fully checked
        self._problem: str | None = None
        self._sections: dict[frozenset[str], str] = {}  # sections of failed tests, and which test showed them first

    def _destination(self) -> Path | None:
        """The report's path: on the command line relative to the invocation folder, in the ini file relative to its folder."""
        given = getattr(self._config.option, "consan_report", None)
        if given:
            return self._config.invocation_params.dir / str(given)
        name = setting(self._config, "consan_report")
        return self._config.rootpath / str(name) if name else None

    def _chosen(self) -> str:
        with usage_errors():
            chosen = choose_format(None, str(self._path or ""))
        if self._path is not None and not self._is_worker and not self._path.parent.is_dir():
            raise pytest.UsageError(f"consan: --consan-report: there is no folder {self._path.parent}")
        return chosen

    # -- collecting ------------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a test phase's findings, from this process or a worker."""
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        for name, test in (("consan_outside", OUTSIDE), ("consan", report.nodeid)):
            text = getattr(report, name, None)
            if text is not None:
                self._add(text, test, outcome if test else "passed")
        if getattr(report, "consan_gap", False):
            self._gappy.add(report.nodeid)
        judged = getattr(report, "consan_judged", None)
        if judged is not None:
            self._judged.setdefault(report.nodeid, []).append(json_format.from_json(json.loads(judged)["report"]))
        if report.failed and getattr(report, "consan", None) is not None:
            self._shorten(report)

    def _shorten(self, report: pytest.TestReport) -> None:
        """Shorten a section that an earlier failed test has shown: parametrised tests often share one cause."""
        found = self._reports[-1]
        keys = frozenset(repr(key(finding)) for finding in found.active)
        first = self._sections.setdefault(keys, report.nodeid)
        if not keys or found.incomplete or first == report.nodeid:
            return
        lines = "".join(f"  {line(finding)}\n" for finding in found.active)
        again = f"reproduce: {shlex.join(found.command)}\n" if found.command else ""
        short_text = f"verdict: {found.verdict}, with the findings that {first} shows in full:\n{lines}{again}"
        report.sections = [(name, short_text if name == SECTION else text) for name, text in report.sections]

    def _add(self, text: str, test: str, outcome: str) -> None:
        data: dict[str, Any] = json.loads(text)
        report = json_format.from_json(data["report"])
        launches = sum(kernel.launches for kernel in report.kernels)
        ran = RanTest(test, outcome, report.verdict, launches, report.incomplete)
        findings = tuple(replace(finding, tests=(test,)) for finding in report.findings)
        self._reports.append(replace(report, findings=findings, tests=(ran,)))
        self._comments |= dict.fromkeys((by, kind) for by, kind in data["comments"])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Collect what an xdist worker launched outside its tests."""
        text = (getattr(node, "workeroutput", None) or {}).get("consan")
        if text is not None:
            self._add(text, OUTSIDE, "passed")

    # -- the end ---------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take the remaining findings; pass them on, or write the report."""
        checking = self._config.stash.get(CHECKING, None)
        rest = checking.take() if checking is not None else None
        if rest is not None and checking is not None:
            text = checking.packed(rest)
            if self._is_worker:
                self._config.workeroutput["consan"] = text  # type: ignore[attr-defined]
            else:
                self._add(text, OUTSIDE, "passed")
        if self._is_worker:
            return
        if any(test.id == OUTSIDE and self._fails(report) for report in self._reports for test in report.tests):
            # No test can fail for these findings, so the run does.
            session.exitstatus = max(int(session.exitstatus), int(pytest.ExitCode.TESTS_FAILED))
        if self._path is not None:
            self._write(self._path, int(session.exitstatus))
        if self._checked_nothing() and settings_of(self._config).gaps_fail and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = EXIT_INCOMPLETE  # no test failed, but nothing was checked either

    def _checked_nothing(self) -> bool:
        """Whether tests ran under `--consan` and no checked kernel was launched."""
        option = self._config.option
        listing = any(getattr(option, name, False) for name in ("collectonly", "setuponly", "setupplan"))
        return CHECKING in self._config.stash and not listing and not kernels_checked(self.combined())

    def _fails(self, report: Report) -> bool:
        settings = settings_of(self._config)
        return failure_of(report, strict=settings.strict, gaps=settings.gaps_fail) is not None

    def combined(self, status: int = 0) -> Report:
        """All findings of the run."""
        reports = [*self._reports, *(report for each in self._judged.values() for report in each)]
        if not reports:
            values = settings_of(self._config).values
            return assemble(device=self._device(), seed=values.seed, policy=values.policy, exit=status, status=status)
        command = ("pytest", *self._config.invocation_params.args)
        return combine(reports, exit=status, status=status, command=command)

    def _device(self) -> str:
        """The device on which kernels would have run."""
        checking = self._config.stash.get(CHECKING, None)
        return str(checking.where if checking is not None else settings_of(self._config).values.device)

    def _write(self, path: Path, status: int) -> None:
        try:
            path.write_text(render(self.combined(status), self._format, **settings_of(self._config).shown), encoding="utf-8")
        except OSError as error:
            self._problem = f"cannot write {path}: {error.strerror or error}"

    # -- what is printed -------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print the findings, if any, and always one closing line."""
        listing = self._config.option.collectonly
        if not self._reports and self._path is None and (listing or CHECKING not in self._config.stash):
            return
        report = self.combined()
        write = terminalreporter.write_line
        bad = report.verdict == VIOLATIONS
        lines = [*self._found(report), *self._gaps(report), *self._closing(report)]
        if lines:
            terminalreporter.write_sep("=", f"consan: {report.verdict}", red=bad, bold=True)
        for text, colour in lines:
            write(text, **colour)
        write(self._totals(report), red=bad)

    def _found(self, report: Report) -> Iterator[Line]:
        """Every cause once, with its count and its tests."""
        notes = settings_of(self._config).notes
        for cause in causes(report.shown(notes=notes)):
            tests, others = len(set(cause.tests) - {OUTSIDE}), len(cause.others)
            more_kernels = f", and in {plural(others, 'more kernel')}" if others else ""
            seen_in = f" in {plural(tests, 'test')}" if tests else ""
            yield line(cause.finding) + more_kernels + seen_in, {"red": cause.finding.severity == "error"}
            shown = [test or "outside of tests" for test in cause.tests[:_SHOWN]]
            more = [f"and {len(cause.tests) - _SHOWN} more"] if len(cause.tests) > _SHOWN else []
            for test in (*shown, *more):
                yield f"    {test}", {}
        if not notes and report.count("note"):
            yield hidden_notes(report), {}
        for finding in (finding for finding in report.findings if finding.suppressed):
            assert finding.suppressed is not None
            yield f"suppressed {line(finding)}: {finding.suppressed.reason} ({short(finding.suppressed.by)})", {}

    def _gaps(self, report: Report) -> Iterator[Line]:
        """Kernels that were not fully checked, and likely mistakes."""
        for reason in report.incomplete:
            yield f"incomplete: {reason}", {"yellow": True}
        for text in (*self._unused(report), *([self._problem] if self._problem else [])):
            yield f"warning: {text}", {"yellow": True}

    def _closing(self, report: Report) -> Iterator[Line]:
        """The commands that show more."""
        for note in report.notes:
            yield f"note: {note}", {}
        for kind in dict.fromkeys(finding.kind for finding in report.shown(notes=settings_of(self._config).notes)):
            yield f"explained by: consan explain {kind}", {}
        if self._path is not None and not self._problem:
            yield f"{self._format} report: {self._path}", {}

    def _totals(self, report: Report) -> str:
        """`consan: clean: 2 kernels, 5 launches, 0 findings in 3 tests on cpu; seed 0; not checked: global-memory`."""
        kernels = [kernel for kernel in report.kernels if kernel.launches]
        launches = sum(kernel.launches for kernel in kernels)
        tests = {test.id for test in report.tests if test.launches} | set(self._judged)
        counts = (plural(len(kernels), "kernel"), plural(launches, "launch", "launches"), plural(len(report.active), "finding"))
        gaps = f" ({len(self._gappy)} incomplete)" if self._gappy else ""
        where = f"in {plural(len(tests - {OUTSIDE}), 'test')}{gaps} on {report.device}; seed {report.seed}"
        areas = ", ".join(area.partition(":")[0] for area in report.not_checked)
        return f"consan: {report.verdict}: {', '.join(counts)} {where}" + (f"; not checked: {areas}" if areas else "")

    def _unused(self, report: Report) -> list[str]:
        if not self._reports:
            return []
        used = {(finding.suppressed.by, finding.kind) for finding in report.findings if finding.suppressed}
        comments = [f"{short(by)}: {kind}: this suppression covered no finding" for by, kind in self._comments if (by, kind) not in used]
        return suppressions.unused(settings_of(self._config).rules, report) + comments


def open_ledger(config: pytest.Config) -> None:
    """Start collecting what tests find."""
    config.stash[LEDGER] = ledger = Ledger(config)
    config.pluginmanager.register(ledger, "consan-ledger")
