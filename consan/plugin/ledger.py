"""The findings of all tests: collected from pytest's reports, summed up at the end, and written to `--consan-report`.

Under xdist the reports come from the workers, and so does what they launched outside of tests; the process that prints is the one that
writes. Findings that tests share are listed once, with the tests.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from consan import suppressions
from consan.commands.deliver import choose_format
from consan.plugin import CHECKING, setting
from consan.plugin.settings import settings_of, usage_errors
from consan.plugin.watch import failure_of, line
from consan.reports import json_format
from consan.reports.combine import combine
from consan.reports.model import VIOLATIONS, RanTest, Report, assemble, plural
from consan.reports.phrases import hidden_notes, short
from consan.reports.render import render

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

OUTSIDE: Final = ""  # the id of what was launched at import time and between tests
_SHOWN: Final = 5  # tests that are listed with a finding


class Ledger:
    """One for each process; that of an xdist worker hands on what pytest's reports do not carry."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._path = self._destination()
        self._format = self._chosen()
        self._reports: list[Report] = []
        self._comments: dict[tuple[str, str], None] = {}
        self._problem: str | None = None

    def _destination(self) -> Path | None:
        """A path on the command line is relative to where pytest was started, one in the ini file to its folder."""
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
        """What a phase of a test found, in this process or in a worker's."""
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        for name, test in (("consan_outside", OUTSIDE), ("consan", report.nodeid)):
            text = getattr(report, name, None)
            if text is not None:
                self._add(text, test, outcome if test else "passed")

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
        """What a worker of xdist launched outside of its last tests."""
        text = (getattr(node, "workeroutput", None) or {}).get("consan")
        if text is not None:
            self._add(text, OUTSIDE, "passed")

    # -- the end ---------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take the rest, hand it on or write everything."""
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
            # No test can fail for it, so the run does.
            session.exitstatus = max(int(session.exitstatus), int(pytest.ExitCode.TESTS_FAILED))
        if self._path is not None:
            self._write(self._path, int(session.exitstatus))

    def _fails(self, report: Report) -> bool:
        return failure_of(report, strict=settings_of(self._config).strict) is not None

    def combined(self, status: int = 0) -> Report:
        """All findings of the run."""
        if not self._reports:
            values = settings_of(self._config).values
            return assemble(device=values.device, seed=values.seed, policy=values.policy, exit=status)
        command = ("pytest", *self._config.invocation_params.args)
        return combine(self._reports, exit=status, command=command)

    def _write(self, path: Path, status: int) -> None:
        try:
            path.write_text(render(self.combined(status), self._format, notes=settings_of(self._config).notes), encoding="utf-8")
        except OSError as error:
            self._problem = f"cannot write {path}: {error.strerror or error}"

    # -- what is printed -------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Every finding once, with its count and its tests; what was not checked; what there is to look at next."""
        if not self._reports and self._path is None:
            return
        report = self.combined()
        write = terminalreporter.write_line
        bad = report.verdict == VIOLATIONS
        terminalreporter.write_sep("=", f"consan: {report.verdict}", red=bad, bold=True)
        notes = settings_of(self._config).notes
        for finding in report.shown(notes=notes):
            tests = len(set(finding.tests) - {OUTSIDE})
            write(line(finding) + (f" in {plural(tests, 'test')}" if tests else ""), red=finding.severity == "error")
            shown = [test or "outside of tests" for test in finding.tests[:_SHOWN]]
            more = [f"and {len(finding.tests) - _SHOWN} more"] if len(finding.tests) > _SHOWN else []
            for test in (*shown, *more):
                write(f"    {test}")
        if not notes and report.count("note"):
            write(hidden_notes(report))
        for finding in (finding for finding in report.findings if finding.suppressed):
            assert finding.suppressed is not None
            write(f"suppressed {line(finding)}: {finding.suppressed.reason} ({short(finding.suppressed.by)})")
        for reason in report.incomplete:
            write(f"not checked: {reason}", yellow=True)
        for text in (*self._unused(report), *([self._problem] if self._problem else [])):
            write(f"warning: {text}", yellow=True)
        for text in self._closing(report):
            write(text)

    def _closing(self, report: Report) -> list[str]:
        launches = sum(kernel.launches for kernel in report.kernels)
        tests = len({test.id for test in report.tests if test.id != OUTSIDE})
        lines = [f"{plural(tests, 'test')} launched kernels {plural(launches, 'time')} on {report.device}; seed {report.seed}"]
        lines += [f"note: {note}" for note in report.notes]
        kinds = dict.fromkeys(finding.kind for finding in report.shown(notes=settings_of(self._config).notes))
        lines += [f"explained by: consan explain {kind}" for kind in kinds]
        return lines + ([f"{self._format} report: {self._path}"] if self._path is not None and not self._problem else [])

    def _unused(self, report: Report) -> list[str]:
        if not self._reports:
            return []
        used = {(finding.suppressed.by, finding.kind) for finding in report.findings if finding.suppressed}
        comments = [f"{short(by)}: {kind}: this suppression covered no finding" for by, kind in self._comments if (by, kind) not in used]
        return suppressions.unused(settings_of(self._config).rules, report) + comments
