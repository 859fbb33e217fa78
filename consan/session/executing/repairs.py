"""Verified fixes of one launch (consan/checker/repairs/fixes.py), as the report has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
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
from consan.reports.records.roles import action_of, role_of_site
from consan.reports.source.places import located
from consan.reports.source.variables import Layout
from consan.reports.words.verified import spelling, turn_of

if TYPE_CHECKING:
    from consan.instrument.ptx import Module
    from consan.session.modules.prepared import Prepared

_ADDRESS: Final = re.compile(r"\bat shared address (0x[0-9a-f]+)")
_MBARRIER_BYTES = 8
MOST: Final = (4 * MOST_EVENTS, 4 * MOST_SECONDS)  # events and seconds of the searches of a session


def fixes_of(
    prepared: Prepared, launch: RecordedLaunch, launched: LaunchedKernel, checked: Checked, limit: int, places: ModuleSites
) -> tuple[dict[int, model.VerifiedFix], int, float]:
    """The fixes of a launch, by the number of the finding, and the events and the seconds that the search took.

    `places`: of the report's words.
    """
    recorded = prepared.recorded
    assert recorded is not None
    questions = Questions(
        launch, recorded, launched, limit=limit, most_events=MOST_EVENTS, most_seconds=MOST_SECONDS, most_lines=MOST_LINES
    )
    sites = questions.places.sites

    def depending(lines: set[int]) -> bool:
        return value_depends(prepared.instrumented.module, lines, global_races=recorded.kernels[launched.entry].has_global)

    texts = {finding.fix for finding in decode(checked.records(), {prepared.number: places})}
    if not texts:  # none of the findings is reported
        return {}, 0, 0.0

    def turn(repair: Repair) -> tuple[int, ...]:
        fix = described(repair.steps, sites, prepared.framework, ())
        return min(turn_of(text, fix, prepared.framework) for text in texts)

    found = verified_fixes(questions, checked, depending, turn)
    module, events = _given(prepared), questions.places
    layout, begin = places.layout(recorded.entries[launched.entry]), questions.launch.window()[0]
    fixes = {
        number: described(fix.steps, sites, prepared.framework, _edits(module, events, fix), fix.left) for number, fix in found.items()
    }
    return {number: _with_names(fix, layout, begin) for number, fix in fixes.items()}, questions.events, questions.seconds


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
    at = "" if step.whole else f"the {_deed(site)}"
    place, own = located(site), _outermost(sites[step.own or step.site])
    if step.whole and site.inlined:
        place |= {"file": site.inlined[-1].file, "line": site.inlined[-1].line}
    return model.FixStep(
        step.action, step.instruction, step.where, at, str(place["file"]), int(place["line"]), site.ptx_line,
        spelling(framework, step.instruction), own.line if step.action != "add" and own.file == place["file"] else 0,
        _is_of_condition(site.opcode),
    )  # fmt: skip


def _deed(site: Site) -> str:
    action = action_of(site)
    return role_of_site(site, action) if action is not None or site.access in ("read", "write") else site.opcode


def _is_of_condition(opcode: str) -> bool:
    row = lookup(tuple(opcode.split(".")))
    return row is not None and row.is_of_condition


def _outermost(site: Site) -> Any:
    """The place in the kernel itself: of a call of what was inlined."""
    return site.inlined[-1] if site.inlined else site
