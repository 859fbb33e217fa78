"""What a worker is asked and what it answers.

`Outcome.status` keeps three things apart: "ok", the program ran and what it did is evidence; "refused", it is not something that consan
runs; anything else says that the machinery failed, which is evidence of nothing: "timeout", "crash", "out-of-memory", "error".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from consan.backends.cpu.decisions import Decision
from consan.reports.model import Report
from consan.reports.suppress import Rule
from consan.triage.subject import Subject

OK, REFUSED, TIMEOUT, CRASH, OUT_OF_MEMORY, ERROR = "ok", "refused", "timeout", "crash", "out-of-memory", "error"
FAILURES: Final = (TIMEOUT, CRASH, OUT_OF_MEMORY, ERROR)

Json = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What is the same for all runs. `ptx` is the kernel's, compiled once."""

    subject: Subject
    ptx: str = ""
    rules: tuple[Rule, ...] = ()
    limit: float = 600.0  # seconds for one run


@dataclass(frozen=True)
class Request:
    """One run: the schedule of a seed, or a baseline with decisions. `whole`: also bring the buffers and the report."""

    seed: int = 0
    record: bool = False
    decisions: Sequence[Decision] | None = None
    baseline: str = "late"
    whole: bool = False


@dataclass(frozen=True)
class Place:
    """A decision's place for people: in the source, and in the PTX before it was rewritten."""

    file: str = ""
    line: int = 0
    ptx_line: int = 0
    ptx: str = ""


@dataclass(frozen=True)
class Told:
    """What can be said of a decision in words: where it acts, whether it did, and who ran, and where, when its delay was over."""

    place: Place | None = None
    over: Place | None = None
    taken: bool = False
    until: Place | None = None
    block: tuple[int, int, int] | None = None
    warp: int = 0
    idle: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of one run. `result` tells results apart; `wrong` is None where nothing says what is right."""

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
    processor: float = 0.0  # seconds of it, of the worker; a program has a process of its own
    kernels: tuple[str, ...] = ()  # hashes of the texts that ran: what decisions are about
    decisions: tuple[Decision, ...] = ()
    told: tuple[Told, ...] = ()
    arrays: dict[int, Any] = field(default_factory=dict, repr=False)
    report: Report | None = field(default=None, repr=False)

    @property
    def errors(self) -> bool:
        """Whether a finding is an error."""
        return any(finding["severity"] == "error" for finding in self.findings)


def key_of(finding: Json) -> str:
    """Findings of different runs are the same if kind, kernel and the pair of places are (consan.reports.model.merge_key)."""
    sites = sorted(_site(access) for access in finding["accesses"])
    return "|".join((finding["kernel"], finding["kind"], *sites))


def _site(access: Json) -> str:
    place = f"{access['file']}:{access['line']}:{access['column']}" if access["line"] else f"PTX {access['ptx_line']}"
    return f"{place} {access['role']}"
