"""The results of an audit: a row for each kernel of a file, and for what kept a file from being judged.

Verdicts of launches are those of reports. A kernel that no launch reached, a source that does not compile, a file whose process was
stopped or ended before its time have verdicts of their own. None of these is `clean`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Final

from consan.dataclass import dataclass
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS

SCHEMA: Final = "consan.audit/1"
_PROCESSOR: Final = ("processor_seconds", "building_seconds")  # journals of earlier versions lack them
WRONG: Final = "wrong result"
NOT_REACHED: Final = "not reached"
NOT_COMPILED: Final = "does not compile"
TIMED_OUT: Final = "timed out"
CRASHED: Final = "crashed"
GUESSED: Final = {VIOLATIONS: "warnings (guessed launch)", CLEAN: "clean (guessed launch)"}
"""In place of a report's verdict, where the launch was guessed. A finding may be the guess's fault, and no finding shows little."""
SMALLER: Final = "warnings (smaller sizes)"
"""In place of violations that the published sizes do not show (confirming.py)."""
GRAVITY: Final = (
    *(VIOLATIONS, WRONG, CRASHED, TIMED_OUT, NOT_COMPILED),
    *(SMALLER, GUESSED[VIOLATIONS], NOT_REACHED, INCOMPLETE, GUESSED[CLEAN], CLEAN),
)
"""The verdicts, the one that speaks for a file first."""


@dataclass(frozen=True)
class RowFinding:
    """A finding of a row: its kind, its severity, a line of the original file, and a sentence. `hazard`: RAW, WAR, WAW; None: it has none.

    `confirmed`: whether the published sizes show an error (confirming.STATES). It is empty for a warning and for a guessed launch.
    """

    kind: str
    severity: str
    file: str
    line: int
    message: str
    lines: tuple[int, ...] = ()
    confirmed: str = ""
    hazard: str | None = None


@dataclass(frozen=True)
class LaunchAnswers:
    """Effects of a kernel's launches on memory (child/questions.py). `seeds`: schedules that were compared. Empty: nothing was seen."""

    seeds: int
    depends_on_schedule: str = ""
    writes_outside: str = ""
    reads_unwritten: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers, one by one."""
        return tuple(filter(None, _texts(self)))

    def united(self, other: LaunchAnswers) -> LaunchAnswers:
        """The answers of both: the first place of each kind."""
        texts = zip(_texts(self), _texts(other), strict=True)
        return LaunchAnswers(min(self.seeds, other.seeds), *(ours or theirs for ours, theirs in texts))


def _texts(answers: LaunchAnswers) -> tuple[str, str, str]:
    return answers.depends_on_schedule, answers.writes_outside, answers.reads_unwritten


@dataclass(frozen=True)
class KernelRow:
    """One kernel of a file. `launch`: its first shape; `launches`: how many were checked. `note`: why it is not clean.

    `guessed`: its launch was. `answers`: None, if nobody asked, or a launch had no end or too much memory.
    """

    file: str
    kernel: str
    verdict: str
    launch: str = ""
    launches: int = 0
    findings: tuple[RowFinding, ...] = ()
    note: str = ""
    seconds: float = 0.0
    guessed: bool = False
    answers: LaunchAnswers | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> KernelRow:
        """From JSON."""
        findings = tuple(RowFinding(**{**each, "lines": tuple(each["lines"])}) for each in given["findings"])
        return cls(**{**given, "findings": findings, "answers": _answers([given["answers"]])})


def _answers(given: Sequence[Mapping[str, Any] | None]) -> LaunchAnswers | None:
    """Those of all launches, from JSON. None, if one has none."""
    known = [LaunchAnswers(**each) for each in given if each is not None]
    return functools.reduce(LaunchAnswers.united, known) if known and len(known) == len(given) else None


@dataclass(frozen=True)
class FileResult:
    """The rows of a file. `error`: the largest difference from the reference, relative to it; None: there is no reference.

    `processor_seconds`: of all its processes; `building_seconds`: those that the compilers of its host code took.
    """

    file: str
    rows: tuple[KernelRow, ...]
    error: float | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    processor_seconds: float = 0.0
    building_seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """The gravest verdict of its rows. A file without rows has reached nothing."""
        return gravest(row.verdict for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "verdict": self.verdict}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> FileResult:
        """From JSON."""
        rows = tuple(map(KernelRow.of, given["rows"]))
        return cls(
            given["file"], rows, given["error"], given["seconds"], tuple(given["notes"]), *(given.get(each, 0.0) for each in _PROCESSOR)
        )


def gravest(verdicts: Iterable[str]) -> str:
    """The verdict that speaks for all."""
    found = set(verdicts)
    return next((each for each in GRAVITY if each in found), NOT_REACHED)


@dataclass
class FileEvents:
    """The events that the process of a file has sent, in order."""

    file: str
    kernels: list[str] = field(default_factory=list)
    launches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[tuple[str, str, str]] = field(default_factory=list)  # kernel, verdict, why
    notes: dict[str, None] = field(default_factory=dict)
    error: float | None = None
    wrong: str = ""
    wrong_verdict: str = WRONG
    smaller: bool = False  # sizes were made smaller
    partial: bool = False  # a launch did not run to its end, or was left out: memory is not what it would be
    done: bool = False
    building: float = 0.0  # seconds of the processor

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the process."""
        self.building += event.get("building", 0.0)
        match event["event"]:
            case "kernels":
                self.kernels += [name for name in event["names"] if name not in self.kernels]
            case "launch":
                self.launches.setdefault(event["kernel"], []).append({**event, "behind": self.partial})
                self.partial = self.partial or event.get("stopped", False)
            case "left out" | "begins" as what:  # a program begins with memory of its own
                self.partial = what == "left out"
            case "failed":
                self.failures.append((event["kernel"], event["verdict"], event["why"]))
            case "note":
                self.notes[event["text"]] = None
            case "smaller":
                self.smaller = True
            case "error" if self.partial or any(kernel for kernel, _, _ in self.failures):
                self.notes["the results are not compared with the reference: a launch was not made, or was stopped before its end"] = None
            case "error":
                self.error, self.wrong = event["value"], event["why"]
            case "done":
                self.done = True

    def result(self, ending: tuple[str, str] | None, seconds: float) -> FileResult:
        """The rows. `ending`: the verdict and the reason where the process did not end by itself."""
        rows = [_launched(self.file, name, events) for name, events in self.launches.items()]
        rows += [KernelRow(self.file, kernel, verdict, note=why) for kernel, verdict, why in dict.fromkeys(self.failures)]
        if ending is not None:
            rows.append(KernelRow(self.file, "", ending[0], note=ending[1]))
        named = {unqualified_name(row.kernel) for row in rows}
        rows += [KernelRow(self.file, name, NOT_REACHED, note="no launch of it was made") for name in self.kernels if name not in named]
        if self.wrong:
            rows.append(KernelRow(self.file, "", self.wrong_verdict, note=self.wrong))
        if not rows:
            rows.append(KernelRow(self.file, "", NOT_REACHED, note="it launched no kernel"))
        return FileResult(self.file, tuple(rows), self.error, seconds, tuple(self.notes))


def unqualified_name(kernel: str) -> str:
    """The last word of a kernel's name in C++, without namespaces and arguments."""
    return kernel.partition("<")[0].rpartition("::")[2]


def _launched(file: str, kernel: str, events: list[dict[str, Any]]) -> KernelRow:
    """All launches of a kernel as one row."""
    verdict = gravest(event["verdict"] for event in events)
    found: dict[tuple[Any, ...], RowFinding] = {}
    for event in events:
        for each in event["findings"]:
            place = RowFinding(**{**each, "lines": tuple(each["lines"])})
            found.setdefault((place.kind, place.file, place.lines), place)
    first = next(event for event in events if event["verdict"] == verdict)
    notes = dict.fromkeys(reason for event in events for reason in event["incomplete"])
    return KernelRow(
        *(file, kernel, verdict, first["launch"], len(events), tuple(found.values())),
        note="; ".join(notes) if verdict == INCOMPLETE else "",
        seconds=sum(event["seconds"] for event in events), guessed=first["guessed"],
        answers=_answers([event["answers"] for event in events]),
    )  # fmt: skip
