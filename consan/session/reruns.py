"""Fixes that runs of the changed kernel confirm, for findings for which a replay of the recorded launch has none: it took called hooks, did
not end, left its path, or could have gone another way.

A repair is written into the PTX and the kernel is run with it. It counts if the finding is gone and no other is there, in each of 20
schedules, or three of a large kernel. Findings are compared by their places in the source, which
edits do not move. The search is bounded by work, so that a slow machine finds the same, and by `--timeout` where one is given.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final

from consan._errors import ConsanError
from consan.checker.edits import Edit, Impossible, edits_of
from consan.checker.forms import Repair
from consan.checker.repairs import Repairs
from consan.checker.text_paths import TextRepair
from consan.checker.text_places import TextPlaces
from consan.checker.text_repairs import TextRepairs
from consan.checker.whole_barriers import own_barriers_in_text
from consan.instrument.abi.events import TYPES, Kind, Operation, Reason
from consan.instrument.ptx import Module
from consan.reports.frameworks import CUDA
from consan.reports.model import Finding, Report, VerifiedFix
from consan.reports.ordering import is_update
from consan.reports.patches import fixed
from consan.reports.places import stands
from consan.session.repairs import told

SCHEDULES: Final = 20
FEWEST_SCHEDULES: Final = 3  # of a large kernel
MOST_REPAIRS: Final = 60  # of a finding
MORE_REPAIRS: Final = 12  # once one removes the finding and leaves others
MOST_TEXT: Final = 1 << 19  # characters of PTX that are run for a report
MOST_INSTRUCTIONS: Final = 100_000_000  # of threads, that are run for a report
_REGISTERS: Final = "register-hazard"
_KINDS: Final = {name: kind for kind, (name, _) in TYPES.items()} | {_REGISTERS: Kind.MISSING_WAIT, "barrier-misuse": Kind.BARRIER_MISUSE}
_OPERATIONS: Final = {"wgmma": Operation.WGMMA, "bulk": Operation.BULK_LOAD, "tensor": Operation.BULK_LOAD}

Run = Callable[[str, int], Report]  # of PTX, under a schedule
_Name = tuple[Any, ...]


@dataclass
class Reruns:
    """The search. `block`, `cluster`: of the launch. `executed`: instructions that the runs have executed, over all threads.

    `ends`: when it must end (time.monotonic).
    """

    module: Module
    run: Run
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    executed: Callable[[], int] = lambda: 0
    good: list[tuple[VerifiedFix, frozenset[_Name]]] = field(default_factory=list)
    ends: float = math.inf
    _characters: int = 0

    def confirmed(self, report: Report) -> Report:
        """The report with the fixes that were confirmed."""
        open_ = [finding for finding in report.active if finding.verified is None]
        if not open_ or any(finding.kind not in _KINDS for finding in open_):
            return report
        found, text = frozenset(map(_name, report.findings)), TextPlaces(self.module)
        for finding in open_:
            if not self._of(finding):
                self._search(text, finding, found)
        return replace(report, findings=tuple(map(self._fixed, report.findings)))

    def _fixed(self, finding: Finding) -> Finding:
        """With the fix that leaves least: one of the replay goes before others, but not before one that removes all findings."""
        fixes = [*filter(None, (finding.verified,)), *self._of(finding)]
        return replace(finding, verified=min(fixes, key=lambda fix: fix.left)) if fixes else finding

    def _of(self, finding: Finding) -> list[VerifiedFix]:
        """The confirmed fixes of a finding."""
        return [fix for fix, left in self.good if _name(finding) not in left and not _loses(fix, finding)]

    @property
    def _spent(self) -> bool:
        return self._characters > MOST_TEXT or self.executed() > MOST_INSTRUCTIONS or self._is_late

    @property
    def _is_late(self) -> bool:
        return time.monotonic() >= self.ends

    def _search(self, text: TextPlaces, finding: Finding, found: frozenset[_Name]) -> None:
        seen: set[tuple[Edit, ...]] = set()
        most = MOST_REPAIRS
        for repair in self._repairs(text, finding):
            if repair.edits in seen:
                continue
            if len(seen) >= most or self._spent:
                return
            seen.add(repair.edits)
            fix = told(repair.steps, text.places.sites, CUDA, repair.edits)
            if _loses(fix, finding):
                continue
            left = self._left(fixed(self.module.text, [self._for_all(fix)]), finding, found)
            if left is not None:
                self.good.append((replace(fix, left=len(left), rerun=True), left))
                most = min(most, len(seen) + MORE_REPAIRS) if left else 0  # perhaps one removes all findings

    def _for_all(self, fix: VerifiedFix) -> VerifiedFix:
        """With barriers that all threads of the CTA have to pass: one that some do not reach must not pass because they exit."""
        return replace(fix, edits=own_barriers_in_text(fix.edits, self.module.text, self.block))

    def _left(self, ptx: str, finding: Finding, found: frozenset[_Name]) -> frozenset[_Name] | None:
        """The findings that the changed kernel still has; None if it is no repair."""
        left: frozenset[_Name] = frozenset()
        begin = self.executed()
        for seed in range(SCHEDULES):
            if seed == FEWEST_SCHEDULES and self._is_large(ptx, self.executed() - begin):
                break
            if self._is_late:
                return None
            self._characters += len(ptx)
            try:
                report = self.run(ptx, seed)
            except ConsanError:
                return None
            left |= frozenset(map(_name, report.findings))
            if report.incomplete or _name(finding) in left or not left <= found:
                return None
        return left

    def _is_large(self, ptx: str, executed: int) -> bool:
        """Whether one repair in all schedules is more work than is allowed. `executed`: in the fewest schedules."""
        return len(ptx) * SCHEDULES > MOST_TEXT or executed * SCHEDULES > FEWEST_SCHEDULES * MOST_INSTRUCTIONS

    def _repairs(self, text: TextPlaces, finding: Finding) -> Iterator[TextRepair]:
        """Those of the text and those of events, in turn."""
        asked: Any = SimpleNamespace(
            places=text.places,
            walked=text.walked,
            launched=SimpleNamespace(block=self.block, cluster=self.cluster),
            launch=SimpleNamespace(window=lambda: (0, 0)),
        )
        events = self._edited(text, Repairs(asked, _record_of(finding, text)))
        lines = frozenset(access.ptx_line for access in (*finding.accesses, *stands(finding)))
        for pair in itertools.zip_longest(TextRepairs(text, finding.kind, finding.situation, lines, self.block), events):
            yield from filter(None, pair)

    def _edited(self, text: TextPlaces, repairs: Iterable[Repair]) -> Iterator[TextRepair]:
        for repair in repairs:
            with contextlib.suppress(Impossible):
                yield TextRepair(repair.steps, edits_of(self.module, text.places, repair.change))


def _loses(fix: VerifiedFix, finding: Finding) -> bool:
    """Whether a fix only hides that updates are lost: synchronisation between the load and the store of an update."""
    return is_update(finding) and any(step.action in ("add", "move") for step in fix.steps)


def _name(finding: Finding) -> _Name:
    return (finding.kind, finding.kernel, *sorted(map(str, (access.site for access in finding.pair))))


def _record_of(finding: Finding, text: TextPlaces) -> dict[str, Any]:
    """A finding of a report as the checker's records have it."""
    numbers = {site.ptx_line: number for number, site in text.places.sites.items()}
    sites = [
        numbers[access.ptx_line]
        for access in ((*finding.accesses, *stands(finding)) if finding.kind == "deadlock" else finding.pair)
        if access.ptx_line in numbers
    ]
    first = text.places.sites[sites[0]] if sites else None
    operation = int(_OPERATIONS.get(first.family, 0)) if first else 0
    if first and "global.shared" in first.opcode:
        operation = int(Operation.BULK_STORE)
    reason = Reason.__members__.get(finding.situation.partition("@")[0].upper().replace("-", "_"), Reason.NONE)
    kind = Kind.DIVERGENCE if finding.situation.startswith("divergent") else _KINDS[finding.kind]
    names = ("flags", "place", "group", "commits")
    return dict.fromkeys(names, 0) | {
        "site": sites[0] if sites else 0,
        "other_site": sites[-1] if sites else 0,
        "kind": int(kind),
        "reason": int(reason),
        "operation": operation,
        "own_operation": operation,
    }
