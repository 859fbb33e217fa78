"""The third event of a finding: an instruction between the two accesses that does not order them.

A table of rules. Each rule looks at the synchronising instructions around the accesses (`instrument/relations.py`) and at the finding,
and names one instruction, or none, with the reason why it does not order (1) before (2). That instruction joins the
accesses with role `culprit`, its sentence joins the message, and the fix becomes: move it, else widen it, else add what is missing.

A rule speaks only if its sentence is true for every path that fits the finding. If no rule fits there is no culprit, and the
words do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from consan.instrument.relations import Relations, SyncPoint
from consan.reports.catalogue.situations import CHECKED, UPDATE
from consan.reports.culprits.cases import Case, CulpritRule, access_of, named
from consan.reports.culprits.finders import two_barriers
from consan.reports.culprits.rules import RULES
from consan.reports.culprits.unwritten import is_array, published_at, with_stores
from consan.reports.model import CULPRIT, Access, Finding
from consan.reports.source.names import variable_name
from consan.reports.source.places import distinct
from consan.reports.words import frameworks
from consan.reports.words.ordering import NEXT_ITERATION, Pair
from consan.reports.words.wording import caller_places, callers, place, refined, words_of


def blame(
    finding: Finding,
    situation: str | None,
    pair: Pair,
    relations: Relations | None,
    facts: dict[str, Any],
    framework: str = frameworks.CUDA,
) -> Finding:
    """The finding with its culprit, if a rule finds one. Two accesses of one instruction have none."""
    first, second = pair
    alone = len(finding.accesses) == 1  # an operation that nobody waits for before the exit
    if (
        relations is None
        or first is None
        or (second is None and not alone)
        or first == second
        or facts.get("position") in (UPDATE, CHECKED)
    ):
        return finding  # an update needs no barrier
    if finding.kind == "uninitialized-read" and alone and is_array(finding.accesses[0].name):
        around = relations.stretches(first, first, (finding.accesses[0].thread,) * 2)
        words = words_of(finding, facts, framework)
        published = published_at(around.before_first, words) if around is not None else ""
        return with_stores(finding, relations.stores(first), published, words["cta_barrier"])
    name = refined(finding, situation)
    rules = [rule for rule in RULES if rule.kind == finding.kind and name in rule.situations]
    if framework in frameworks.GROUPS_BY_COMPILER:
        rules = [rule for rule in rules if rule.find is not two_barriers]
    one, other = finding.accesses[0], finding.accesses[-1]
    around = relations.stretches(first, second or first, (one.thread, other.thread)) if rules else None
    if around is None:
        return finding
    words, signals = words_of(finding, facts, framework), relations.signals(finding.kernel)
    last = second or first
    case = Case(
        finding, name, around, facts, words, signals,
        lambda: relations.stretches(first, last, (None, None)),
        lambda: relations.awaited_count(first, last) or relations.awaited_count(last, first),
    )  # fmt: skip
    blamed = next((_blamed(case, rule, found, framework) for rule in rules if (found := rule.find(case)) is not None), finding)
    return replace(blamed, accesses=tuple(_with_barrier(access, finding.kernel, relations) for access in blamed.accesses))


def _with_barrier(access: Access, kernel: str, relations: Relations) -> Access:
    """The culprit with the variable of its mbarrier, if its address is known."""
    if access.role != CULPRIT or not access.op.startswith("mbarrier."):
        return access
    symbols = {signal.symbol for signal in relations.signals(kernel) if signal.place.ptx_line == access.ptx_line}
    return replace(access, name=variable_name(symbols.pop()) if len(symbols) == 1 else "")


def _blamed(case: Case, rule: CulpritRule, found: SyncPoint | tuple[SyncPoint, Mapping[str, str]], framework: str) -> Finding:
    point, more = found if isinstance(found, tuple) else (found, {})
    finding, access = case.finding, distinct((*case.finding.accesses, access_of(point)))[-1]
    words = {**case.words, "culprit": named(point, case.words), "culprit_at": place(access), "in_between": _in_between(case), **more}
    to_change = {**words, **callers(finding), "culprit_at": caller_places(case.first, access)[1]}
    return replace(
        finding,
        accesses=(*finding.accesses, access),
        cause=rule.cause,
        message=f"{finding.message}; {frameworks.tidy(rule.sentence.format_map(words))}",
        fix=frameworks.tidy(rule.fix.format_map(to_change)) + frameworks.advice(framework, finding.kind),
    )


def _in_between(case: Case) -> str:
    """When all threads must pass a barrier that orders (1) before (2)."""
    first, second = place(case.first), place(case.second)
    return " in every iteration" if case.facts.get("position") == NEXT_ITERATION else f", after {first} and before {second}"
