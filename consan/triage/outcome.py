"""A worker's request and its answer.

`Outcome.status`: "ok" means the program ran and its behaviour is evidence; "refused" means consan cannot run it;
all others mean that the machinery failed, which is no evidence: "timeout", "crash", "out-of-memory", "error".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any, Final

from consan.backends.cpu.engine.decisions import Decision
from consan.dataclass import dataclass
from consan.reports.formats.json_format import finding_to_json
from consan.reports.model import Report
from consan.reports.verdict.suppression import Rule
from consan.triage.subject import Subject

OK, REFUSED, TIMEOUT, CRASH, OUT_OF_MEMORY, ERROR = "ok", "refused", "timeout", "crash", "out-of-memory", "error"
FAILURES: Final = (TIMEOUT, CRASH, OUT_OF_MEMORY, ERROR)

Json = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The part that all runs share. `ptx` is the kernel's, compiled once."""

    subject: Subject
    ptx: str = ""
    rules: tuple[Rule, ...] = ()
    limit: float = 600.0  # seconds for one run


@dataclass(frozen=True)
class Request:
    """One run: a seed's schedule, or a baseline with decisions. `whole`: also return the buffers and the report."""

    seed: int = 0
    record: bool = False
    decisions: Sequence[Decision] | None = None
    baseline: str = "late"
    whole: bool = False


@dataclass(frozen=True)
class DecisionPlace:
    """A decision's place: in the source, and in the PTX before instrumentation. `call`: the kernel's line that calls its function."""

    file: str = ""
    line: int = 0
    ptx_line: int = 0
    ptx: str = ""
    call: str = ""


@dataclass(frozen=True)
class DecisionWords:
    """The description of a decision: where it acts, whether it acted, and who ran, and where, when its delay ended."""

    place: DecisionPlace | None = None
    over: DecisionPlace | None = None
    taken: bool = False
    until: DecisionPlace | None = None
    block: tuple[int, int, int] | None = None
    warp: int = 0
    rank_grid: int = 0  # CTAs of a rank in the last dimension, in a launch of several ranks
    idle: bool = False


@dataclass(frozen=True)
class Outcome:
    """The result of one run. Equal runs have equal `result`; `wrong` is None if nothing decides it."""

    seed: int = 0
    status: str = OK
    detail: str = ""
    verdict: str = ""
    device: str = ""
    findings: tuple[Json, ...] = ()  # those that count, as in consan.report/1
    incomplete: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    result: str = ""
    ended: str = ""  # why the launch or program ended early, if it did
    wrong: bool | None = None
    differences: str = ""
    seconds: float = 0.0
    processor: float = 0.0  # processor seconds of the worker; a program has its own process
    kernels: tuple[str, ...] = ()  # hashes of the texts that ran, which decisions refer to
    decisions: tuple[Decision, ...] = ()
    described: tuple[DecisionWords, ...] = ()
    arrays: dict[int, Any] = field(default_factory=dict, repr=False)
    report: Report | None = field(default=None, repr=False)

    @property
    def errors(self) -> bool:
        """Whether a finding is an error."""
        return any(finding["severity"] == "error" for finding in self.findings)


def key_of(finding: Json) -> str:
    """The key for equal findings of different runs: kind, kernel and pair of places (reports.verdict.shared.merge_key)."""
    sites = sorted(_site(access) for access in finding["accesses"])
    return "|".join((finding["kernel"], finding["kind"], *sites))


def _site(access: Json) -> str:
    place = f"{access['file']}:{access['line']}:{access['column']}" if access["line"] else f"PTX {access['ptx_line']}"
    return f"{place} {access['role']}"


def outcome_of(report: Report, endings: Collection[str], *, whole: bool = False) -> Outcome:
    """The outcome from a report. A run that the time limit ended is no evidence."""
    ended = next(iter(endings), "")
    if "timeout" in endings:
        return Outcome(status=TIMEOUT, device=report.device, detail="a launch did not end in time")
    return Outcome(
        device=report.device,
        verdict=report.verdict,
        findings=tuple(finding_to_json(finding) for finding in report.active),
        incomplete=report.incomplete,
        not_checked=report.not_checked,
        ended=ended,
        report=report if whole else None,
    )
