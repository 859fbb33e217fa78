"""Takes the findings of one test after each phase, judges them, and adds them to pytest's reports.

A test fails if an unexpected finding counts (under strict settings also a warning or a gap), or if
an expected finding is missing. A passing test with a gap is marked as incomplete.
Findings of setup fixtures belong to the test's call; those of the
teardown are an error of the teardown. If a test fails anyway, its findings are shown with it.

`Checking` is the session of a run under `--consan`. Without it a watch sees only launches through the fixture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

import pytest

from consan import adapters, api, suppressions
from consan._errors import ConsanError
from consan.dataclass import dataclass
from consan.plugin import markers
from consan.plugin.interposed import InterposedSession, is_interposed, run_again
from consan.plugin.keys import ConsanWarning
from consan.plugin.settings import Settings, settings_of, usage_errors
from consan.reports.counts import plural
from consan.reports.formats import json_format
from consan.reports.formats.render import render
from consan.reports.model import INCOMPLETE, VIOLATIONS, Finding, Report
from consan.reports.source.names import kernel_name
from consan.reports.verdict.combination import combine
from consan.reports.verdict.coverage import AREAS, says_nothing_ran
from consan.reports.words.wording import place
from consan.session.session_options import open_session

if TYPE_CHECKING:
    from consan.session.session import Session


class NotCleanError(AssertionError):
    """Raised for a kernel that was asserted to be clean. The report is in its own section."""

    def __init__(self, message: str, failure: str, report: Report) -> None:
        super().__init__(message)
        self.failure, self.report = failure, report


class Checking:
    """The session that sanitizes a whole pytest run."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = settings_of(config)
        run_again(config)
        self.session: Session | InterposedSession
        if is_interposed():
            self.session, self.where = InterposedSession(self.settings.session.seed), "a GPU, by the interposer"
        else:
            self.session, self.where = self._opened()

    def _opened(self) -> tuple[Session, str]:
        with usage_errors():
            session = open_session(self.settings.session)
            adapters.install(session)
            return session, session.backend.device_name

    def close(self) -> None:
        """Restore the frameworks' functions."""
        adapters.remove()

    def describe(self) -> str:
        """The line for pytest's header."""
        strict = ", strict" if self.settings.strict else ""
        return f"consan: every test is sanitized on {self.where}, seed {self.session.seed}{strict}"

    def watch(self, item: pytest.Item) -> WatchedTest:
        """Start a test: earlier launches are not its own."""
        return WatchedTest(item, self.settings, self, self.take())

    def take(self) -> Report | None:
        """The launches since the last call, with suppressions applied."""
        report = self.session.take()
        return None if report is None else suppressions.finish(report, self.settings.rules)

    def packed(self, report: Report) -> str:
        """A report for the ledger, possibly in another process, with the comments that could have matched."""
        comments = [(rule.by, rule.kind) for rule in suppressions.comments_at(self.session.places(report))]
        return pack(report, comments)


def pack(report: Report, comments: Sequence[tuple[str, str]] = ()) -> str:
    """A report as text, as it goes from a test to the ledger."""
    return json.dumps({"report": json_format.to_json(report), "comments": comments})


SECTION: Final = "consan"  # the section's title in pytest's report


@dataclass
class PhaseOutcome:
    """The outcome of one phase of a test."""

    report: Report
    failure: str | None = None
    gap: bool = False  # its launches were not fully checked, and nothing allows that


@dataclass
class WatchedTest:
    """One test."""

    item: pytest.Item
    settings: Settings
    checking: Checking | None = None
    before: Report | None = None  # launched outside of tests, before this one
    outcomes: dict[str, PhaseOutcome] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    used: set[tuple[str, str]] = field(default_factory=set)
    asserted: list[Report] = field(default_factory=list)
    judged: list[Report] = field(default_factory=list)  # reports that the test itself has judged: only their launches count
    asserting: bool = False
    sanitized: bool = False

    def __post_init__(self) -> None:
        self.marks = markers.read(self.item)
        api.OBSERVERS.append(self._observe)

    def _observe(self, report: Report) -> None:
        if not self.asserting:
            self.judged.append(report)

    # -- what was seen ---------------------------------------------------------------------------------------------------

    def saw(self, report: Report) -> Report:
        """Record a report of this test, judged by the project's and the test's rules."""
        try:
            judged = suppressions.finish(report, (*self.settings.rules, *self.marks.rules))
        except ConsanError as error:  # an invalid suppression comment
            pytest.fail(f"consan: {error}", pytrace=False)
        self.sanitized = True
        self.kinds |= {finding.kind for finding in judged.findings}
        self.used |= {(finding.suppressed.by, finding.kind) for finding in judged.findings if finding.suppressed}
        return judged

    def _take(self) -> Report | None:
        report = self.checking.session.take() if self.checking else None
        return None if report is None else self.saw(replace(report, command=self.settings.command(self.item.nodeid)))

    # -- the phases ------------------------------------------------------------------------------------------------------

    def passed(self, when: str) -> None:
        """The phase passed: fail it if something counts. Launches in setup fixtures count with the call."""
        if when == "setup":
            return
        taken = self._take()
        reports = [report for report in (taken, *self._asserted_clean()) if report is not None]
        if reports:
            report = combine(reports)
            self._finish(when, report, self._failure(report))
            self.outcomes[when].gap = taken is not None and taken.verdict == INCOMPLETE and not self.settings.allow_incomplete
        if when == "call":
            self._check_markers()

    def _asserted_clean(self) -> list[Report]:
        """Leave out reports of failed assertions of a passing test: the test has caught them."""
        clean = [report for report in self.asserted if self._failure(report) is None]
        self.judged += [report for report in self.asserted if not any(report is one for one in clean)]
        self.asserted = []
        return clean

    def failed(self, when: str, error: BaseException) -> None:
        """The phase failed by itself: show the findings."""
        taken = self._take()
        reports = [report for report in (taken, *self.asserted) if report is not None]
        self.asserted = []
        if reports:
            self._record(when, combine(reports), error.failure if isinstance(error, NotCleanError) else None)

    def _failure(self, report: Report) -> str | None:
        return failure_of(report, strict=self.settings.strict, gaps=self.settings.gaps_fail)

    def _finish(self, when: str, report: Report, failure: str | None) -> None:
        self._record(when, report, failure)
        if failure is not None:
            pytest.fail(headline(report), pytrace=False)

    def _record(self, when: str, report: Report, failure: str | None) -> None:
        self.outcomes[when] = PhaseOutcome(report, failure)
        self.item.user_properties.append(("consan", report.verdict))
        self.item.user_properties += [("consan.finding", line(finding)) for finding in report.active]
        self.item.user_properties += [("consan.incomplete", reason) for reason in report.incomplete]

    def _check_markers(self) -> None:
        if not (self.sanitized or self.checking):
            return
        absent = [kind for kind in self.marks.expected if kind not in self.kinds]
        if absent:
            pytest.fail(f"consan: expected {', '.join(absent)}, found {', '.join(sorted(self.kinds)) or 'nothing'}", pytrace=False)
        for rule in self.marks.allowed:
            if (rule.by, rule.kind) not in self.used:
                self.item.warn(ConsanWarning(f"{rule}: covered no finding of this test"))

    # -- pytest's report -------------------------------------------------------------------------------------------------

    def publish(self, report: pytest.TestReport) -> None:
        """Attach the outcome of the phase, and a section with the text if something counts."""
        packed = self.checking.packed if self.checking else pack
        before, self.before = self.before, None
        if before is not None:
            report.consan_outside = packed(before)  # type: ignore[attr-defined]
        judged, self.judged = self.judged, []
        if judged:
            report.consan_judged = pack(launches_of(judged))  # type: ignore[attr-defined]
        if report.when == "teardown" and self._observe in api.OBSERVERS:
            api.OBSERVERS.remove(self._observe)
        outcome = self.outcomes.pop(report.when or "", None)
        if outcome is None:
            return
        report.consan = packed(outcome.report)  # type: ignore[attr-defined]
        report.consan_failure = outcome.failure  # type: ignore[attr-defined]
        report.consan_gap = outcome.gap  # type: ignore[attr-defined]
        if outcome.report.active or outcome.report.verdict == INCOMPLETE:
            report.sections.append((SECTION, render(outcome.report, "text", **self.settings.shown)))


def launches_of(reports: Sequence[Report]) -> Report:
    """The launches of a report without its findings, which the test has judged."""
    return combine([_stripped(report) for report in reports])


def _stripped(report: Report) -> Report:
    nothing = tuple(filter(says_nothing_ran, report.incomplete))
    kernels = tuple(replace(kernel, excluded=tuple(AREAS)) for kernel in report.kernels)
    return replace(report, kernels=kernels, findings=(), incomplete=nothing, dropped=0, evicted=0, notes=(), sources={})


def failure_of(report: Report, *, strict: bool, gaps: bool) -> str | None:
    """Why a test with this report fails: `racy`, `incomplete`, or None. `strict`: warnings fail it; `gaps`: gaps do."""
    if report.verdict == VIOLATIONS or (strict and report.count("warning")):
        return "racy"
    return "incomplete" if gaps and report.verdict == INCOMPLETE else None


def line(finding: Finding) -> str:
    """`error[data-race]: RAW in kernel k, k.cu:5 and k.cu:9, 64 times`."""
    hazard = f"{finding.hazard} " if finding.hazard else ""
    where = " and ".join(dict.fromkeys(place(access) for access in finding.pair))
    parts = (f"{finding.severity}[{finding.kind}]: {hazard}in kernel {kernel_name(finding.kernel)}", where, plural(finding.count, "time"))
    return ", ".join(filter(None, parts))


def headline(report: Report) -> str:
    """One line: the worst finding and how many more, or the first gap."""
    if not report.active:
        return f"consan: {report.verdict}: {report.incomplete[0]}" if report.incomplete else f"consan: {report.verdict}"
    more = f" (and {plural(len(report.active) - 1, 'more finding')})" if len(report.active) > 1 else ""
    return f"consan: {line(report.active[0])}{more}"
