"""Reduces a failing schedule to the fewest decisions that still fail: delta debugging (ddmin; Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", 2002) over the decisions of consan.backends.cpu.engine.decisions.

1. Record the seed's decisions. The failure must occur.
2. Choose a baseline that does not fail by itself: `prompt`, where every delay is a decision, or else `late`. If both fail, no delay
   is needed, and the result is an empty list.
3. In `prompt`, hold late copies back further, if it still fails then: even a polling thread does not make them land. A failure
   caused by one late copy then no longer depends on the seed's luck.
4. ddmin, first on whole decisions, then on their parts by CTA, then by warp. The result is 1-minimal: no decision can be removed.
5. Shorten each delay by bisection. A shorter one may exist if the failure does not depend monotonically
   on the length.

Runs of one round are independent and go to all workers; the choice does not depend on which worker is faster. Not handled: failures that
need two launches when only one is recorded, and programs that launch in a different order each time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Protocol

from consan._errors import UsageError
from consan.backends.cpu.engine.decisions import BASELINES, HOLD, LAND, START, Decision, Who
from consan.backends.cpu.state.schedule import AT_ONCE, HELD
from consan.dataclass import dataclass
from consan.triage.executors import Workers
from consan.triage.outcome import FAILURES, OK, Job, Json, Outcome, Request, key_of

Decisions = list[Decision]


class Watcher(Protocol):
    """The interface of a progress display."""

    def begin(self, what: str, total: int | None) -> None:
        """A search begins."""

    def say(self, text: str, done: int = 0) -> None:
        """Some more runs are done."""


@dataclass(frozen=True)
class Failure:
    """The failure: a wrong result, or a finding by its key. `reference` is the right result, if the runs do not know it."""

    what: str  # "wrong" or "finding"
    text: str
    key: str = ""
    reference: str = ""

    def __call__(self, outcome: Outcome) -> bool:
        """Whether a run shows the failure."""
        if outcome.status != OK:
            return False
        if self.what == "finding":
            return any(key_of(finding) == self.key for finding in outcome.findings)
        if outcome.wrong is not None:
            return outcome.wrong
        return bool(outcome.ended) or (bool(self.reference) and outcome.result != self.reference)


@dataclass
class Minimiser:
    """A search. `decisions` and `baseline` are the best so far, also after an interrupt."""

    job: Job
    failure: Failure
    seed: int
    workers: Workers
    watcher: Watcher
    kernels: tuple[str, ...] = ()  # hashes of the texts that ran when the failure was seen
    decisions: Decisions = field(default_factory=list)
    baseline: str = "prompt"
    recorded: int = 0
    runs: int = 0
    seconds: float = 0.0
    partial: bool = False
    _known: dict[tuple[Decision, ...], bool] = field(default_factory=dict)

    def run(self) -> None:
        """Search. UsageError if the failure does not repeat."""
        self.watcher.begin("reduce", None)
        started = time.monotonic()
        try:
            self._record()
            if not self._fails_alone():
                self._shrink()
        except KeyboardInterrupt:
            self.partial = True
            self.workers.stop()
        finally:
            self.seconds = time.monotonic() - started

    def last(self) -> Outcome:
        """Run the best schedule once more, and return the effect of each decision."""
        return self._do([Request(self.seed, decisions=self.decisions, baseline=self.baseline)])[0]

    # -- runs ------------------------------------------------------------------------------------------------------------

    def _do(self, requests: Sequence[Request]) -> list[Outcome]:
        found = dict(self.workers.results(self.job, requests))
        self.runs += len(found)
        return [found[index] for index in range(len(requests))]

    def _record(self) -> None:
        (outcome,) = self._do([Request(self.seed, record=True)])
        if outcome.status in FAILURES:
            raise UsageError(f"seed {self.seed} does not run to its end: {outcome.status}: {outcome.detail}")
        if self.kernels and outcome.kernels != self.kernels:
            raise UsageError("the kernels that ran are not those of the campaign (consan has changed): run consan stress again")
        if not self.failure(outcome):
            raise UsageError(f"seed {self.seed} does not fail here: {self.failure.text}")
        self.decisions, self.recorded = list(outcome.decisions), len(outcome.decisions)

    def _fails_alone(self) -> bool:
        """Choose the baseline. Returns whether it fails without decisions."""
        for baseline in BASELINES:
            (outcome,) = self._do([Request(self.seed, decisions=[], baseline=baseline)])
            if not self.failure(outcome):
                self.baseline = baseline
                usual = BASELINES[baseline]
                self.decisions = [decision for decision in self.decisions if (decision.kind, decision.steps) != (LAND, usual)]
                return False
        self.baseline, self.decisions = next(iter(BASELINES)), []
        return True

    def _first(self, candidates: Sequence[Decisions]) -> int | None:
        """The first list that fails. Later lists may not have been tried."""
        known = [self._known.get(tuple(candidate)) for candidate in candidates]
        indices = [index for index, fails in enumerate(known) if fails is None]
        stop = next((index for index, fails in enumerate(known) if fails), len(candidates))
        indices = [index for index in indices if index < stop]
        requests = [Request(self.seed, decisions=candidates[index], baseline=self.baseline) for index in indices]
        results = self.workers.results(self.job, requests)
        for position, outcome in results:
            index = indices[position]
            known[index] = self._known[tuple(candidates[index])] = self.failure(outcome)
            self.runs += 1
            self.watcher.say(f"{len(self.decisions)} decisions left of {self.recorded}, {self.runs} runs", 1)
            first = next((place for place, fails in enumerate(known) if fails is not False), None)
            if first is not None and known[first]:
                break
        results.close()
        return next((index for index, fails in enumerate(known) if fails), None)

    # -- the search ------------------------------------------------------------------------------------------------------

    def _shrink(self) -> None:
        self._strengthen()
        for divide in (lambda decision: [decision], by_cta, by_warp):
            self.decisions = [part for decision in self.decisions for part in divide(decision)]
            self._ddmin()
        for index in range(len(self.decisions)):
            self._shorten(index)

    def _strengthen(self) -> None:
        """Delay late copies further, as long as it still fails."""
        if self.baseline != "prompt":
            return
        late = [index for index, decision in enumerate(self.decisions) if decision.kind == LAND and decision.steps != AT_ONCE]
        stronger = [replace(d, steps=HELD) if index in late else d for index, d in enumerate(self.decisions)]
        if late and self._first([stronger]) is not None:
            self.decisions = stronger

    def _ddmin(self) -> None:
        parts = 2
        while len(self.decisions) > 1:
            chunks = split(self.decisions, parts)
            found = self._first(chunks)
            if found is not None:
                self.decisions, parts = chunks[found], 2
                continue
            rests = [[d for other in chunks[:index] + chunks[index + 1 :] for d in other] for index in range(len(chunks))]
            found = self._first(rests) if len(chunks) > 2 else None
            if found is not None:
                self.decisions, parts = rests[found], max(parts - 1, 2)
            elif parts >= len(self.decisions):
                return
            else:
                parts = min(2 * parts, len(self.decisions))

    def _shorten(self, index: int) -> None:
        """The shortest delay of one decision, by bisection."""
        decision = self.decisions[index]
        if decision.kind not in (START, HOLD, LAND) or decision.steps < 2:
            return
        low, high = 0, decision.steps  # fails with `high`; nothing is known about larger values
        while high - low > 1:
            middle = (low + high) // 2
            candidate = [*self.decisions[:index], replace(decision, steps=middle), *self.decisions[index + 1 :]]
            if self._first([candidate]) is None:
                low = middle
            else:
                high, self.decisions = middle, candidate


def split(items: Decisions, parts: int) -> list[Decisions]:
    """Split a list into nearly equal runs."""
    bounds = [len(items) * index // parts for index in range(parts + 1)]
    return [items[low:high] for low, high in itertools.pairwise(bounds) if high > low]


def _divided(decision: Decision, key: Callable[[Who], object]) -> Decisions:
    groups: dict[object, list[Who]] = {}
    for who in decision.who:
        groups.setdefault(key(who), []).append(who)
    return [replace(decision, who=tuple(whos)) for whos in groups.values()]


def by_cta(decision: Decision) -> Decisions:
    """One decision for each CTA."""
    return _divided(decision, lambda who: who.block)


def by_warp(decision: Decision) -> Decisions:
    """One for each warp and visit."""
    return _divided(decision, lambda who: (who.block, who.warp, who.nth))


def failure_of(document: Json, number: int | None) -> tuple[Failure, list[int]]:
    """The failure to reduce, and its seeds: wrong results, or the finding with this number in the table, or the rarest."""
    wrong = [row for row in document["results"] if row["wrong"]]
    if number is None and wrong:
        text = wrong[0]["differences"] or (f"ends early: {wrong[0]['ended']}" if wrong[0]["ended"] else "the result is wrong")
        return Failure("wrong", text, reference=document["reference"]["result"]), wrong[0]["seeds"]
    findings = document["findings"]
    if not findings:
        raise UsageError("there is no wrong result and no finding in it: nothing to reduce")
    if number is not None and not 1 <= number <= len(findings):
        raise UsageError(f"--finding: there are {len(findings)}, got {number}")
    row = min(findings, key=lambda row: row["runs"]) if number is None else findings[number - 1]
    finding = row["finding"]
    return Failure("finding", f"{finding['kind']} in {finding['kernel']}: {finding['message']}", row["key"]), row["seeds"]
