"""Fixes that runs of the changed kernel confirm: those of the replay, and others where a replay of the recorded launch has none, because it
took called hooks, did not end, left its path, or could have gone another way.

A repair is written into the PTX and the kernel is run with it, in each of 20 schedules, three of a large kernel, or one if its threads
observe nothing of each other (consan/session/planning/observations.py). It counts if no run has an error or a warning, and all leave the
same results. Where nothing else counts, results may differ (who gets a lock first?) with order that the finding's fix names. Its words are
also tried as new lines of the CUDA source. A repair that leaves other findings is kept, and repairs of these are tried together with it.
Findings are compared by their places in the source, which edits do not move.

The search is bounded by work, so that runs are equal on all machines of ordinary speed; and in processor time, so that a user does not
wait for a fix that does not exist. A busy machine finds the same fixes, unless the search takes `BUSY` times as long there.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from consan._errors import ConsanError
from consan.checker.questions.pieces import CLUSTER, words_of
from consan.checker.repairs.edits import Edit, Impossible, edits_of
from consan.checker.repairs.forms import Repair
from consan.checker.repairs.repairs import Repairs
from consan.checker.repairs.text_clusters import AT_EACH_CTA
from consan.checker.repairs.text_paths import TextRepair, is_for_all
from consan.checker.repairs.text_places import TextPlaces
from consan.checker.repairs.text_repairs import TextRepairs
from consan.checker.repairs.text_waits import COUNTED
from consan.checker.repairs.whole_barriers import barriers_for, own_barrier, own_barriers_in_text
from consan.dataclass import dataclass
from consan.instrument.findings import KINDS
from consan.instrument.ptx import Module
from consan.reports.catalogue.situations import ISSUED_ONLY, LAPPED
from consan.reports.model import Finding, FixStep, Report, VerifiedFix
from consan.reports.source.patches import fixed
from consan.reports.source.places import waiting_places
from consan.reports.source.source_candidates import branches, later_waits, moves, waits, waits_of_some
from consan.reports.source.source_patches import between, block_of, outside, patched
from consan.reports.verdict.speaking.shared import merge_key
from consan.reports.words.frameworks import CUDA
from consan.reports.words.verified import NOT_NAMED, asks_for_nothing, is_tighter_wait, misses_cause, names, own_words, turn_of, with_fix
from consan.session.asking import outcomes
from consan.session.asking.recorded import RECORDED, REGISTERS, record_of
from consan.session.executing.repairs import described

__all__ = ["LONGEST", "CudaSource", "Ran", "Reruns", "outcomes"]  # both kinds of runs of a launch are loaded together

SCHEDULES: Final = 20
FEWEST_SCHEDULES: Final = 3  # of a large kernel
MOST_REPAIRS: Final = 60  # that are run for a report
MORE_REPAIRS: Final = 10  # once one removes the finding and leaves others
MOST_LISTED: Final = 160  # of a finding, among which what its fix names comes first
FIRST_OF_RACES: Final = 12  # repairs of events before those of the text: a barrier of a warp, or an arrival that moves
MOST_PIECES: Final = 2  # that are tried as lines of the source
MOST_TEXT: Final = 1 << 21  # characters of PTX that are run for a report
LARGE_TEXT: Final = 1 << 19  # that one repair may have in all schedules
MOST_INSTRUCTIONS: Final = 100_000_000  # of threads, that are run for a report
LONGEST: Final = 2.8  # seconds of processor time in which repairs are begun, with those of the replays
BUSY: Final = 4  # times as long on a busy machine
_RACES: Final = ("data-race", "missing-wait", "missing-order")
_CONFLICTS: Final = frozenset(each.name for each in KINDS.values() if each.conflicts)

_ORDERS: Final = re.compile(r"fence\.(?:sc|acq_rel|proxy)\b|bar\.warp\.sync |bar\.sync 0$|(?:cp\.async|wgmma)\.\S*(?:commit|wait)_group\b")
_OF_CLUSTER: Final = words_of(CLUSTER[0])
_PHASES: Final = re.compile(r"\b(?:wait for|phase|parity)\b")
_OF_SOME: Final = re.compile(r"bar\.sync \d+, \d+")  # a barrier of some warps, where none of all threads was found

_Name = tuple[Any, ...]


@dataclass(frozen=True)
class Ran:
    """A run of a changed kernel: its report, what it leaves in its buffers, and the instructions that its threads have executed.

    `in_all`: whether a run in each other schedule has the same report and results.
    """

    report: Report
    results: bytes = b""
    executed: int = 0
    in_all: bool = False


Run = Callable[[str, int], Ran]  # of PTX, under a schedule


def races(report: Report) -> list[Finding]:
    """The findings that are two accesses in conflict, and errors."""
    return [each for each in report.findings if each.kind in _CONFLICTS and each.severity == "error"]


def judged(report: Report, before: Report) -> list[Finding]:
    """Findings that no repair of a race may leave: races, and errors of kinds that the launch did not have `before`, such as a deadlock."""
    known = {REGISTERS, *(each.kind for each in before.findings)} - _CONFLICTS
    return [each for each in report.findings if each.severity == "error" and each.kind not in known]


def why_not_compared(report: Report, found: Iterable[Finding]) -> str:
    """Why not all of a launch without optimisation was compared; empty if it was. `found`: its races."""
    compared = {REGISTERS, *(each.kind for each in found)}
    ended = next((each.kind for each in report.findings if each.severity == "error" and each.kind not in compared), "")
    return f"its launch shows {ended}" if ended else next(iter(report.incomplete), "")


@dataclass(frozen=True)
class CudaSource:
    """A kernel's file, its text, and what makes PTX of another text in its place.

    `other`: the same with the other optimisation, which a repair must hold in, too.
    """

    file: str
    text: str
    compiled: Callable[[str], str]
    other: Callable[[str], str] | None = None


@dataclass
class Reruns:
    """The search. `block`, `cluster`: of the launch. `ends`: when it must end, as `clock` has it. `longest`: seconds, if that is sooner, as
    `works` has them.

    `source`: if the kernel was compiled from one.
    """

    module: Module
    run: Run
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    ends: float = math.inf
    clock: Callable[[], float] = time.monotonic
    longest: float = LONGEST
    works: Callable[[], float] = time.process_time
    source: CudaSource | None = None
    tried: int = 0  # repairs
    _schedules: int = 0  # in which the last repair left nothing, and equal results
    _results: bytes = b""  # that it leaves
    _characters: int = 0
    _executed: int = 0

    def confirmed(self, report: Report) -> Report:
        """The report with the fix that was confirmed; without any, if none was."""
        active = [finding for finding in report.active if finding.severity != "note"]
        counting = [finding for finding in active if not asks_for_nothing(finding)] or active
        plain = [finding for finding in counting if finding.seed is None]
        # A schedule that steers at places of this text would be another one in a changed text. An overwrite that only such a one shows laps
        # a phase in each other one: what removes the lap keeps the writer back.
        laps = [finding for finding in plain if finding.situation == LAPPED] if len(plain) < len(counting) else []
        if len(plain) < len(counting) and not laps:
            return report
        known = [finding.verified for finding in counting]
        if not counting or (all(known) and not any(fix.edits for fix in known if fix)):
            return report  # nothing can be run
        if report.seed >= FEWEST_SCHEDULES and not self.shows(plain):
            return report
        fix = self._fix_of([*laps, *(each for each in plain if each not in laps)], frozenset(map(merge_key, report.findings)))
        fix = fix and replace(fix, left=len(active) - len(counting))
        chosen = {id(finding): fix for finding in counting}
        return replace(report, findings=tuple(with_fix(finding, chosen.get(id(finding))) for finding in report.findings))

    def shows(self, findings: Iterable[Finding]) -> bool:
        """Whether the kernel itself shows these findings in a schedule in which repairs run: else any change seems to remove them."""
        ran = self._ran(self.module.text, 0)
        return ran is not None and frozenset(map(merge_key, findings)) <= frozenset(map(merge_key, ran.report.findings))

    def _fix_of(self, findings: list[Finding], found: frozenset[_Name]) -> VerifiedFix | None:
        """One repair of all findings."""
        ends, worked = min(self.clock() + BUSY * self.longest, self.ends), self.works()
        whole: VerifiedFix | None = None
        base, left, text = VerifiedFix((), rerun=True), frozenset(map(merge_key, findings)), TextPlaces(self.module)
        for finding in findings if all(each.kind in RECORDED for each in findings) else ():
            if merge_key(finding) not in left:
                continue
            best, most = None, MOST_REPAIRS
            for fix in self._fixes(text, finding, base):
                if self.tried >= most or self._spent or self.clock() >= ends or self.works() >= worked + self.longest:
                    break
                remains = self._left(fix, finding, found, SCHEDULES if whole is None and _is_named_order(fix, finding) else 1)
                if remains is not None and not remains:
                    fix = replace(fix, schedules=self._schedules)
                    holds, race = self._holds_in_source(fix)
                    if holds and not race and fix.schedules:
                        return fix
                    kept = fix if holds or names(own_words(finding), fix) else _of_ptx(fix)
                    whole = whole or replace(kept, unoptimized=race)
                    continue
                if remains is not None and best is None:
                    best, most = (fix, remains), min(most, self.tried + MORE_REPAIRS)  # perhaps one removes all findings
            if whole is not None:
                return whole
            base, left = best or (base, left)  # the repair of another finding may be that of this one
        return None

    def _holds_in_source(self, fix: VerifiedFix) -> tuple[bool, str]:
        """Whether new lines of the source are the repair, too, and leave its results, if it can be written so: their line may be more than
        the instruction; and the race that they leave with the other optimisation.
        """
        text = patched(self.source.text, [fix], self.source.file) if self.source else ""
        if not text or self.source is None:
            return True, ""
        try:
            ran = self._ran(self.source.compiled(text), 0) if fix.edits else None
            race = self._race_in_other(self.source, text)
        except ConsanError:  # the text does not compile
            return False, ""
        if ran is None or (self._schedules and ran.results != self._results):
            return not fix.edits, race
        counting = (each for each in ran.report.findings if each.severity != "note" and not asks_for_nothing(each))
        return not (fix.edits and any(counting)), race

    def _race_in_other(self, source: CudaSource, text: str) -> str:
        """The kind of a race that a changed source has with the other optimisation."""
        ran = self._ran(source.other(text), 0) if source.other is not None else None
        return next((each.kind for each in races(ran.report) if each.suppressed is None), "") if ran is not None else ""

    def _fixes(self, text: TextPlaces, finding: Finding, base: VerifiedFix) -> Iterator[VerifiedFix]:
        """Repairs of a finding, each together with those of earlier ones: that of the replay, what the finding's fix names, the others."""
        replayed = (fix,) if (fix := finding.verified) and fix.edits and not misses_cause(fix, finding) else ()
        others = (described(each.steps, text.places.sites, CUDA, each.edits) for each in self._repairs(text, finding))
        listed = list(itertools.islice((fix for fix in others if not misses_cause(fix, finding)), MOST_LISTED))
        turns = [turn_of(own_words(finding), fix, CUDA) for fix in listed]
        named = [fix for turn, fix in sorted(zip(turns, listed, strict=True), key=operator.itemgetter(0)) if turn != NOT_NAMED]
        lines = itertools.chain(self._spelled(text, finding), self._lines(finding, listed)) if self.source and not base.steps else ()
        seen: set[object] = set()
        whole = [fix for fix in replayed if self._is_whole(fix) and not any(_OF_SOME.match(step.instruction) for step in fix.steps)]
        moves_one = own_words(finding).startswith("move the ") or finding.cause == ISSUED_ONLY  # it is the better repair
        short = [fix for fix in named if not any(COUNTED in step.instruction for step in fix.steps)]
        heard = [fix for fix in listed if any(step.instruction == AT_EACH_CTA for step in fix.steps)]
        first = (short, lines, named, whole) if moves_one else (whole, heard, short, lines, named)
        of_some = () if base.steps else self._of_some(text, finding)
        for fix in itertools.chain(of_some, *first, replayed, listed):
            if (key := fix.edits or fix.steps) not in seen and _are_disjoint(base.edits, fix.edits):
                seen.add(key)
                yield VerifiedFix((*base.steps, *fix.steps), 0, (*base.edits, *fix.edits), rerun=True)

    def _spelled(self, text: TextPlaces, finding: Finding) -> Iterator[VerifiedFix]:
        """Lines that the finding's fix moves, and waits at mbarriers as the source spells them."""
        source = self.source
        assert source is not None
        own, active = self._own_lines(finding), _compiled_lines(text)
        yield from map(VerifiedFix, moves(source.text, own_words(finding), source.file))
        if finding.hazard == "RAW":  # else what is written comes too early for a read, or is lost
            yield from (VerifiedFix((step,)) for step in branches(source.text, own, source.file))
        second = finding.pair[-1].line if finding.pair else 0
        yield from (VerifiedFix((step,)) for step in (later_waits(source.text, second, source.file, active) if second in own else ()))
        lines = dict.fromkeys(place for line in own[-1:] for place in (line, block_of(source.text, line)))
        for step in waits(source.text, list(lines), source.file, active) if _is_of_phases(finding) else ():
            yield VerifiedFix((step,))

    def _own_lines(self, finding: Finding) -> list[int]:
        """The lines of a finding's accesses in the source."""
        assert self.source is not None
        file = os.path.realpath(self.source.file)
        return sorted(access.line for access in finding.pair if os.path.realpath(access.file) == file)

    def _of_some(self, text: TextPlaces, finding: Finding) -> Iterator[VerifiedFix]:
        """Without the condition of a wait that stands between the lines of a finding."""
        if self.source is not None and (own := self._own_lines(finding)):
            yield from (VerifiedFix((step,)) for step in waits_of_some(self.source.text, own, self.source.file, _compiled_lines(text)))

    def _lines(self, finding: Finding, listed: Iterable[VerifiedFix]) -> Iterator[VerifiedFix]:
        """New lines of the source with what the finding's fix names: an optimiser may have merged the branches between which it belongs."""
        assert self.source is not None
        added = (fix.steps for fix in listed if all(_is_named(step, finding) for step in fix.steps))
        words = (tuple(dict.fromkeys((step.instruction, step.spelling) for step in steps)) for steps in added)
        pieces = list(dict.fromkeys(words))[:MOST_PIECES]
        own = self._own_lines(finding)
        for line, piece in itertools.product(between(self.source.text, own), pieces):
            at = outside(self.source.text, line) if any(_OF_CLUSTER in word for word, _ in piece) else line
            yield VerifiedFix(tuple(FixStep("add", word, "after", "", self.source.file, at, 0, spelled) for word, spelled in piece))

    @property
    def _spent(self) -> bool:
        return self._characters > MOST_TEXT or self._executed > MOST_INSTRUCTIONS

    def _left(self, fix: VerifiedFix, finding: Finding, found: frozenset[_Name], most_results: int = 1) -> frozenset[_Name] | None:
        """The findings that the changed kernel still has; None if it is no repair. One that leaves none holds in all schedules."""
        ptx = self._text_with(fix)
        if not ptx:
            return None
        self.tried += 1
        results: set[bytes] = set()
        begin = self._executed
        for seed in range(SCHEDULES):
            if seed == FEWEST_SCHEDULES and self._is_large(ptx, self._executed - begin):
                break
            ran = self._ran(ptx, seed)
            if ran is None or ran.report.incomplete:
                return None
            counting = (each for each in ran.report.findings if each.severity != "note")
            left = frozenset(merge_key(each) for each in counting if asks_for_nothing(finding) or not asks_for_nothing(each))
            results.add(ran.results)
            partly = left and (seed or not fix.edits)
            if merge_key(finding) in left or not left <= found or partly or len(results) > most_results:
                return None
            if left:
                return left
            self._schedules, self._results = seed + 1 if len(results) == 1 else 0, ran.results
            if ran.in_all:
                break
        return frozenset()

    def _ran(self, ptx: str, seed: int) -> Ran | None:
        """A run of a kernel; None if it cannot run, or there is no time."""
        if self.clock() >= self.ends:
            return None
        self._characters += len(ptx)
        try:
            ran = self.run(ptx, seed)
        except ConsanError:
            return None
        self._executed += ran.executed
        return ran

    def _text_with(self, fix: VerifiedFix) -> str:
        """The PTX of the changed kernel, with barriers that all threads of the CTA have to pass: one that some do not reach must not pass
        because they exit. Empty if there is none.
        """
        text, block = self.module.text, self.block
        if fix.edits:
            return fixed(text, [replace(fix, edits=own_barriers_in_text(fix.edits, text, block))])
        source, barriers = self.source, barriers_for(text, block)
        steps = tuple(_with_own_barrier(each, barriers) for each in fix.steps)
        changed = patched(source.text, [replace(fix, steps=steps)], source.file) if source else ""
        try:
            return source.compiled(changed) if source and changed else ""
        except ConsanError:
            return ""

    def _is_large(self, ptx: str, executed: int) -> bool:
        """Whether one repair in all schedules is more work than is allowed. `executed`: in the fewest schedules."""
        return len(ptx) * SCHEDULES > LARGE_TEXT or executed * SCHEDULES > FEWEST_SCHEDULES * MOST_INSTRUCTIONS

    def _repairs(self, text: TextPlaces, finding: Finding) -> Iterator[TextRepair]:
        """Those of the text and those of events, in turn; of a race the narrowest of events first."""
        asked: Any = SimpleNamespace(
            places=text.places,
            walked=text.walked,
            launched=SimpleNamespace(block=self.block, cluster=self.cluster),
            launch=SimpleNamespace(window=lambda: (0, 0)),
        )
        events = iter(self._edited(text, Repairs(asked, record_of(finding, text))))
        yield from itertools.islice(events, FIRST_OF_RACES if finding.kind in _RACES else 0)
        lines = frozenset(access.ptx_line for access in (*finding.accesses, *waiting_places(finding)))
        for pair in itertools.zip_longest(TextRepairs(text, finding.kind, finding.situation, lines, self.block), events):
            yield from filter(self._is_whole, filter(None, pair))

    def _is_whole(self, repair: TextRepair | VerifiedFix) -> bool:
        """Whether all threads come to a barrier of the cluster that is added: one that has exited counts as arrived."""
        return all(is_for_all(self.module, start) for start, end, text in repair.edits if start == end and _OF_CLUSTER in text)

    def _edited(self, text: TextPlaces, repairs: Iterable[Repair]) -> Iterator[TextRepair]:
        for repair in repairs:
            with contextlib.suppress(Impossible):
                yield TextRepair(repair.steps, edits_of(self.module, text.places, repair.change))


def _with_own_barrier(step: FixStep, barriers: Iterator[str]) -> FixStep:
    """A step with a barrier that no other thread waits at, if it has one of a CTA, or adds one of a warp."""
    words = own_barrier(step.instruction, step.action == "add", barriers)
    return step if words == step.instruction else replace(step, instruction=words, spelling="")


def _of_ptx(fix: VerifiedFix) -> VerifiedFix:
    """A fix whose lines of the source are not the repair, at the lines of the PTX."""
    return replace(fix, steps=tuple(replace(step, line=0, own_line=0) for step in fix.steps))


def _is_named(step: FixStep, finding: Finding) -> bool:
    return step.action == "add" and any(word and word in own_words(finding) for word in (step.instruction, step.spelling))


def _is_named_order(fix: VerifiedFix, finding: Finding) -> bool:
    """Whether a repair is fences, barriers and waits that the finding's fix names: with them, threads do what they may do without."""
    words = own_words(finding)
    return all((_is_named(step, finding) or is_tighter_wait(words, step)) and _ORDERS.match(step.instruction) for step in fix.steps)


def _compiled_lines(text: TextPlaces) -> set[int]:
    """The lines of the source that a kernel has instructions of."""
    return {(site.inlined[-1] if site.inlined else site).line or 0 for site in text.places.sites.values()}


def _is_of_phases(finding: Finding) -> bool:
    """Whether a wait for an mbarrier may be what a finding lacks."""
    return finding.barrier is not None or _PHASES.search(own_words(finding)) is not None


def _are_disjoint(one: Iterable[Edit], other: Iterable[Edit]) -> bool:
    """Whether no edit of the one replaces text that an edit of the other replaces."""
    return all(a[1] <= b[0] or b[1] <= a[0] for a in one for b in other)
