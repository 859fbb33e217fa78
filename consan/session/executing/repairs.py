"""Verified fixes in a session: which launches are asked about (consan/checker/repairs/fixes.py), and the fixes as the report has them.

A launch is asked only if it shows findings that no launch of its kernel has shown before, and only as long as the session's allowance of
replayed events lasts: what a places costs does not grow with its launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from consan.checker.judging.checked import Checked
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.checker.questions.changes import EventPlaces
from consan.checker.questions.questions import Questions
from consan.checker.repairs.edits import Edit, Impossible, edits_of
from consan.checker.repairs.fixes import MOST_EVENTS, MOST_LINES, MOST_SECONDS, Fix, verified_fixes
from consan.checker.repairs.forms import Repair, RepairStep
from consan.instrument.isa import lookup
from consan.instrument.ptx import parse
from consan.instrument.record.analyses.value_dependence import value_depends
from consan.instrument.sites import Site
from consan.reports import model
from consan.reports.decoding.decode import decode
from consan.reports.records.finding_records import ModuleSites
from consan.reports.source.places import located
from consan.reports.source.variables import Layout
from consan.reports.verdict.speaking.terms import Key
from consan.reports.words.verified import spelling, turn_of

if TYPE_CHECKING:
    from consan.instrument.ptx import Module
    from consan.session.modules.prepared import Prepared

_ADDRESS: Final = re.compile(r"\bat shared address (0x[0-9a-f]+)")
_MBARRIER_BYTES = 8
_LAUNCHES = 4  # of a session, that may take the most


@dataclass
class Fixes:
    """The search for fixes of a session."""

    off: bool = False
    seconds: float = 0.0  # of processor time, that it has taken
    _events: int = 0
    _seen: dict[tuple[int, int], set[Key]] = field(default_factory=dict)  # by kernel

    def of(
        self, prepared: Prepared, launch: RecordedLaunch, launched: LaunchedKernel, checked: Checked, limit: int, places: ModuleSites
    ) -> dict[int, model.VerifiedFix]:
        """The fixes of a launch that was just checked, by the number of the finding. `places`: of the report's words."""
        seen = self._seen.setdefault((launched.module, launched.entry), set())
        if self.off or seen.issuperset(checked.keys) or self._spent or prepared.recorded is None:
            return {}
        seen.update(checked.keys)
        recorded = prepared.recorded
        questions = Questions(
            launch, recorded, launched, limit=limit, most_events=MOST_EVENTS, most_seconds=MOST_SECONDS, most_lines=MOST_LINES
        )
        sites = questions.places.sites

        def depending(lines: set[int]) -> bool:
            return value_depends(prepared.instrumented.module, lines, global_races=recorded.kernels[launched.entry].has_global)

        texts = {finding.fix for finding in decode(checked.records(), {prepared.number: places})}
        if not texts:  # none of the findings is reported
            return {}

        def turn(repair: Repair) -> tuple[int, ...]:
            fix = described(repair.steps, sites, prepared.framework, ())
            return min(turn_of(text, fix, prepared.framework) for text in texts)

        found = verified_fixes(questions, checked, depending, turn)
        self._events, self.seconds = self._events + questions.events, self.seconds + questions.seconds
        module, events = _given(prepared), questions.places
        layout, begin = places.layout(recorded.entries[launched.entry]), questions.launch.window()[0]
        fixes = {
            number: described(fix.steps, sites, prepared.framework, _edits(module, events, fix), fix.left) for number, fix in found.items()
        }
        return {number: _with_names(fix, layout, begin) for number, fix in fixes.items()}

    @property
    def _spent(self) -> bool:
        return self._events >= _LAUNCHES * MOST_EVENTS or self.seconds >= _LAUNCHES * MOST_SECONDS


def _with_names(fix: model.VerifiedFix, layout: Layout, begin: int) -> model.VerifiedFix:
    """A fix with the names of its mbarriers in place of their addresses. `begin`: the address of the first byte of shared memory."""

    def named(found: re.Match[str]) -> str:
        offset = int(found[1], 16) - begin
        name = layout.name(offset, offset + _MBARRIER_BYTES)
        return f"{name} (shared offset {offset})" if name else f"at shared offset {offset}"

    steps = tuple(replace(step, instruction=_ADDRESS.sub(named, step.instruction)) for step in fix.steps)
    return replace(fix, steps=steps)


def _given(prepared: Prepared) -> Module:
    """The text that the user has: the recorded one may have loads under their conditions (instrument/rewriting/lifted.py)."""
    module = prepared.instrumented.module
    return module if module.text == prepared.plain else parse(prepared.plain, prepared.name)


def _edits(module: Module, places: EventPlaces, fix: Fix) -> tuple[Edit, ...]:
    """Empty if the text cannot have the change."""
    try:
        return edits_of(module, places, fix.change)
    except Impossible:
        return ()


def described(
    steps: Iterable[RepairStep], sites: Mapping[int, Site], framework: str, edits: tuple[Edit, ...], left: int = 0
) -> model.VerifiedFix:
    """A fix as the report has it."""
    return model.VerifiedFix(tuple(_step(step, sites, framework) for step in steps), left, edits)


def _step(step: RepairStep, sites: Mapping[int, Site], framework: str) -> model.FixStep:
    site = sites[step.site]
    at = "" if step.whole else f"the {site.access if site.access in ('read', 'write') else site.opcode}"
    place, own = located(site), _outermost(sites[step.own or step.site])
    if step.whole and site.inlined:
        place |= {"file": site.inlined[-1].file, "line": site.inlined[-1].line}
    return model.FixStep(
        step.action, step.instruction, step.where, at, str(place["file"]), int(place["line"]), site.ptx_line,
        spelling(framework, step.instruction), own.line if step.action != "add" and own.file == place["file"] else 0,
        _is_of_condition(site.opcode),
    )  # fmt: skip


def _is_of_condition(opcode: str) -> bool:
    row = lookup(tuple(opcode.split(".")))
    return row is not None and row.is_of_condition


def _outermost(site: Site) -> Any:
    """The place in the kernel itself: of a call of what was inlined."""
    return site.inlined[-1] if site.inlined else site
