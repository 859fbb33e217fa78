"""Runs many seeds of one job, counts findings and results, and runs some again as confirmation.

A result is wrong if the file of --expect, the program's status, or an early end of a launch says so. Without any of these,
the result of more than half of the runs counts as right, and the document says so. Without a majority no
result is called right or wrong, and the verdict is at best incomplete. Runs that the machinery failed (timeout, crash,
out of memory, error) are listed and excluded from all rates. Intervals are Wilson's, at 95 %.

The document is `consan.stress/1` (schema in consan.reports.schema). Its findings are those of `consan.report/1`, as first seen.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from statistics import NormalDist
from typing import Any, Final, Protocol

from consan import late
from consan._errors import Interrupted, UsageError
from consan.dataclass import dataclass
from consan.reports.counts import plural
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS
from consan.triage import subject as subjects
from consan.triage.executors import Workers
from consan.triage.outcome import OK, REFUSED, Job, Json, Outcome, Request, key_of
from consan.triage.run import describe_differences

SCHEMA: Final = "consan.stress/1"
_LEVEL: Final = 0.95
_SEEDS_LISTED: Final = 20
_CONFIRMED: Final = 12  # findings and results of each sort that are confirmed
_LARGEST: Final = 64 << 20  # bytes of buffers that are compared element by element


class CampaignProgress(Protocol):
    """The interface of a progress display."""

    def begin(self, what: str, total: int) -> None:
        """A number of runs begins."""

    def advance(self, outcome: Outcome) -> None:
        """One run is done."""


@dataclass
class Campaign:
    """The runs of a job. `run` and `confirm` may be interrupted; the runs done until then count."""

    job: Job
    seeds: Sequence[int]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    again: dict[int, list[Outcome]] = field(default_factory=dict)
    seconds: float = 0.0
    partial: bool = False
    _differences: dict[str, str] = field(default_factory=dict)

    def run(self, workers: Workers, progress: CampaignProgress) -> None:
        """Run all seeds. An error that every run would have is raised once, as a UsageError."""
        progress.begin("seeds", len(self.seeds))
        started = time.monotonic()
        try:
            for _, outcome in workers.results(self.job, map(Request, self.seeds)):
                if outcome.status == REFUSED and not any(other.status == OK for other in self.outcomes.values()):
                    raise UsageError(outcome.detail)
                self.outcomes[outcome.seed] = outcome
                self.seconds = time.monotonic() - started
                progress.advance(outcome)
        except KeyboardInterrupt:
            self.partial = True
            workers.stop()

    def confirm(self, workers: Workers, progress: CampaignProgress, times: int) -> None:
        """Run an example of each finding and of each wrong result again, and describe the wrong results."""
        if self.partial or not self.ok:
            return
        chosen = list(dict.fromkeys(self._examples()))
        requests = [Request(seed) for seed in chosen for _ in range(times)]
        compared = self._to_compare()
        progress.begin("again", len(requests) + len(compared))
        try:
            for index, outcome in workers.results(self.job, [*requests, *(Request(seed, whole=True) for seed in compared)]):
                progress.advance(outcome)
                if index < len(requests):
                    self.again.setdefault(outcome.seed, []).append(outcome)
                else:
                    compared[outcome.seed] = outcome
        except KeyboardInterrupt:
            self.partial = True
            workers.stop()
            return
        self._compare(compared)

    # -- what is right ---------------------------------------------------------------------------------------------------

    @property
    def ok(self) -> list[Outcome]:
        """The runs that count as evidence, by seed."""
        return [self.outcomes[seed] for seed in sorted(self.outcomes) if self.outcomes[seed].status == OK]

    @property
    def reference(self) -> str:
        """The result of more than half of the runs with a result; "" if there is none."""
        counts = Counter(outcome.result for outcome in self.ok if not outcome.ended and outcome.wrong is not True)
        result, runs = counts.most_common(1)[0] if counts else ("", 0)
        return result if 2 * runs > counts.total() else ""

    def is_wrong(self, outcome: Outcome, reference: str) -> bool | None:
        """Whether a run's result is wrong. None if nothing decides it, and no result has a majority."""
        if outcome.wrong is not None:
            return outcome.wrong
        return True if outcome.ended else outcome.result != reference if reference else None

    def undecided(self) -> tuple[str, ...]:
        """Why nothing decides which result is right; empty if something does."""
        reference = self.reference
        results = {outcome.result for outcome in self.ok if self.is_wrong(outcome, reference) is None}
        return (f"no result has a majority: nothing says which of {len(results):,} results is right",) if results else ()

    def findings(self) -> dict[str, list[Outcome]]:
        """The runs that have each finding, by its key."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self.ok:
            for key in dict.fromkeys(key_of(finding) for finding in outcome.findings):
                found.setdefault(key, []).append(outcome)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def results(self) -> dict[tuple[str, str], list[Outcome]]:
        """The runs that have each result."""
        found: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in self.ok:
            found.setdefault((outcome.result, outcome.ended), []).append(outcome)
        return dict(sorted(found.items(), key=lambda item: (self.is_wrong(item[1][0], self.reference) is True, -len(item[1]), item[0])))

    def _wrong(self) -> list[list[Outcome]]:
        return [runs for runs in self.results().values() if self.is_wrong(runs[0], self.reference)]

    def _examples(self) -> Iterable[int]:
        yield from (runs[0].seed for runs in list(self.findings().values())[:_CONFIRMED])
        yield from (runs[0].seed for runs in self._wrong()[:_CONFIRMED])

    # -- what differs ----------------------------------------------------------------------------------------------------

    def _to_compare(self) -> dict[int, Outcome | None]:
        """Seeds whose buffers show what is wrong with a result, if no run shows it itself. The reference's seed is the first."""
        subject, reference = self.job.subject, self.reference
        wrong = [runs[0] for runs in self._wrong() if not runs[0].differences][:_CONFIRMED]
        if not isinstance(subject, subjects.KernelSubject) or not wrong or not reference or _bytes_of(subject) > _LARGEST:
            return {}
        right = next(outcome.seed for outcome in self.ok if outcome.result == reference and self.is_wrong(outcome, reference) is False)
        return dict.fromkeys([right, *(outcome.seed for outcome in wrong)])

    def _compare(self, compared: dict[int, Outcome | None]) -> None:
        outcomes = [outcome for outcome in compared.values() if outcome is not None and outcome.status == OK]
        for outcome in outcomes[1:]:
            texts = (describe_differences(index, array, outcomes[0].arrays[index]) for index, array in outcome.arrays.items())
            self._differences[outcome.result] = "; ".join(text for text in texts if text)

    # -- the document ----------------------------------------------------------------------------------------------------

    def verdict(self) -> str:
        """Violations if a run had an error or a wrong result. Incomplete if a run was not fully checked, not done, or cannot be judged."""
        if any(outcome.errors for outcome in self.ok) or self._wrong():
            return VIOLATIONS
        return CLEAN if len(self.ok) == len(self.seeds) and not self.incomplete() else INCOMPLETE

    def incomplete(self) -> list[str]:
        """Why the campaign is incomplete, but for runs that the machinery failed."""
        reasons = [*self.undecided(), *(reason for outcome in self.ok for reason in outcome.incomplete)]
        return list(dict.fromkeys(reasons))

    def document(self, **more: Any) -> Json:
        """Everything, as JSON."""
        ok, reference = self.ok, self.reference
        right, wrong, undecided = ([o for o in ok if self.is_wrong(o, reference) is answer] for answer in (False, True, None))
        return {
            "schema": SCHEMA,
            "verdict": self.verdict(),
            "partial": self.partial,
            "device": next((outcome.device for outcome in ok), ""),
            "subject": subjects.to_json(self.job.subject),
            "seeds": {"first": min(self.seeds), "last": max(self.seeds), "asked": len(self.seeds), "done": len(self.outcomes)},
            "runs": {
                "ok": len(ok),
                "right": len(right),
                "wrong": rate(len(wrong), len(ok)),
                "with_errors": rate(sum(outcome.errors for outcome in ok), len(ok)),
                "right_with_errors": sum(outcome.errors for outcome in right),
                "undecided": len(undecided),
                "failed": len(self.outcomes) - len(ok),
            },
            "reference": {"from": self._source_of_reference(), "result": reference},
            "findings": [self._finding(key, runs) for key, runs in self.findings().items()],
            "results": [self._result(runs) for runs in self.results().values()],
            "failures": self._failures(),
            "incomplete": self.incomplete(),
            "not_checked": list(dict.fromkeys(area for outcome in ok for area in outcome.not_checked)),
            "kernels": list(dict.fromkeys(value for outcome in ok for value in outcome.kernels)),
            "seconds": round(self.seconds, 3),
            **more,
        }

    def _source_of_reference(self) -> str:
        subject = self.job.subject
        if self.undecided():
            return "none"
        if isinstance(subject, subjects.KernelSubject):
            return "expected" if subject.expected.expect else "majority"
        return "majority" if subject.stdout else "status"

    def _finding(self, key: str, runs: list[Outcome]) -> Json:
        finding = next(finding for finding in runs[0].findings if key_of(finding) == key)
        again = self.again.get(runs[0].seed, [])
        same = sum(any(key_of(other) == key for other in outcome.findings) for outcome in again)
        right = sum(self.is_wrong(outcome, self.reference) is False for outcome in runs)
        return {"key": key, "finding": finding, **self._counted(runs), "in_right_runs": right, "confirmed": _again(same, again)}

    def _result(self, runs: list[Outcome]) -> Json:
        first = runs[0]
        again = self.again.get(first.seed, [])
        same = sum((outcome.result, outcome.ended) == (first.result, first.ended) for outcome in again)
        return {
            "result": first.result,
            "ended": first.ended,
            "wrong": self.is_wrong(first, self.reference),
            "differences": first.differences or self._differences.get(first.result, ""),
            **self._counted(runs),
            "confirmed": _again(same, again),
        }

    def _counted(self, runs: list[Outcome]) -> Json:
        seeds = sorted(outcome.seed for outcome in runs)
        return {**rate(len(runs), len(self.ok)), "seeds": seeds[:_SEEDS_LISTED]}

    def _failures(self) -> list[Json]:
        groups: dict[tuple[str, str], list[int]] = {}
        for outcome in (self.outcomes[seed] for seed in sorted(self.outcomes)):
            if outcome.status != OK:
                groups.setdefault((outcome.status, outcome.detail), []).append(outcome.seed)
        return [
            {"status": status, "detail": detail, "runs": len(seeds), "seeds": seeds[:_SEEDS_LISTED]}
            for (status, detail), seeds in groups.items()
        ]


def _again(same: int, again: Sequence[Outcome]) -> Json | None:
    return {"same": same, "runs": len(again)} if again else None


def _bytes_of(subject: subjects.KernelSubject) -> int:
    buffers: list[Any] = [getattr(spec, "buffer", spec) for spec in late.arguments.parse_args(subject.launch.args)]
    return sum(buffer.size * buffer.dtype.itemsize for buffer in buffers if hasattr(buffer, "size"))


def rate(events: int, runs: int) -> Json:
    """A number of runs, its share, and the share's 95 % interval (Wilson's score interval)."""
    low, high = wilson(events, runs)
    return {"runs": events, "of": runs, "rate": events / runs if runs else None, "interval": [round(low, 6), round(high, 6)]}


def wilson(events: int, runs: int) -> tuple[float, float]:
    """Wilson's score interval of a share; (0, 1) without runs."""
    if not runs:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    share, weight = events / runs, z * z / runs
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / runs + weight / (4 * runs))
    return max(0.0, centre - half) if events else 0.0, min(1.0, centre + half) if events < runs else 1.0


def summary(document: Json) -> str:
    """The sentence that a stress test alone cannot say."""
    runs = document["runs"]
    wrong, found, ok = runs["wrong"]["runs"], runs["with_errors"]["runs"], runs["ok"]
    judged = f"wrong result in {wrong:,} of {plural(ok, 'run')}"
    if runs.get("undecided"):
        judged = "no result has a majority" + (f"; {judged}" if wrong else "")
    sentence = f"{judged}; an error reported in {found:,} of {ok:,}"
    silent = runs["right_with_errors"]
    return sentence + (f", also in {silent:,} of the {runs['right']:,} runs whose result was right" if silent else "")


def refuse_empty(campaign: Campaign) -> None:
    """`Interrupted` if no run gave anything."""
    if not campaign.outcomes:
        raise Interrupted("interrupted before the first run ended: there is nothing to keep")
