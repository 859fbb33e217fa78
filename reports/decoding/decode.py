"""Turns the records of findings into findings in words: who, where, what is missing.

Inputs are the records and the site tables of the modules, never PTX. (1) of a finding is the access that came first, (2) the one that
conflicts with it. For a missing wait (1) is the operation in flight; for a stage refilled too early (2) is the refill, whichever was
seen first.

Not known: the CTA of the second access in later occurrences of a merged finding (the first one is kept).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from consan.instrument.abi.bits import STATE
from consan.instrument.abi.sizes import CLUSTER_BARRIER
from consan.instrument.findings import KINDS, FindingFlags, FindingRecord, Hazard, Kind, MbarrierPhase, Reason, Waiting
from consan.reports.catalogue.races import EXCHANGED
from consan.reports.catalogue.situations import RELEASED_EARLY, UPDATE
from consan.reports.culprits import blame
from consan.reports.decoding.branches import where_all_pass
from consan.reports.decoding.buffers import named_by_line
from consan.reports.decoding.implied_commits import of_implied_commit
from consan.reports.decoding.misuse import explained_misuse, explained_refill
from consan.reports.decoding.racing_values import value_of
from consan.reports.model import Dim3, Finding
from consan.reports.records.divergence import divergence
from consan.reports.records.facts import buffer_facts, facts_of, lacked_arrivals, loop_facts, outside_facts, situation_of
from consan.reports.records.finding_records import ModuleSites, barrier_name, barrier_state, entry_of, is_global, kernel_of
from consan.reports.records.numbering import block_of, in_cta, inside, rank_of
from consan.reports.records.roles import HAZARDS, accesses_of, buffer_of, pair_of, races_turned, writes_shared
from consan.reports.records.tensor_memory import in_tensor_memory
from consan.reports.source.places import distinct, shown_at
from consan.reports.verdict.speaking.records import is_exchanged, reported
from consan.reports.verdict.tolerance import is_unused, with_lost_updates, with_tolerance
from consan.reports.waiting.deadlocks import Phase
from consan.reports.waiting.unended import with_late_arrivals
from consan.reports.waiting.waiters import Waiter, deadlock_of
from consan.reports.words.between_ranks import in_words_of_ranks
from consan.reports.words.ordering import LOOPED_STORE, NEXT_ITERATION, Pair, in_one_round, in_program_order, of_a_later_round, turned
from consan.reports.words.wording import describe


def decode(records: Sequence[FindingRecord], modules: Mapping[int, ModuleSites]) -> list[Finding]:
    """The findings of all records."""
    findings: list[Finding] = []
    described: dict[tuple[Any, ...], Finding] = {}
    by_other = {_pair_key(found) for found in records if found.reason is Reason.RELEASED_BY_OTHER}
    for found in reported(records, modules):
        module = modules[found.module]
        if found.kind is Kind.DEADLOCK:
            findings.append(_deadlock(found, records, module))
            continue
        key = _words_key(found, module)
        known = described.get(key)
        findings.append(
            described.setdefault(key, _finding(found, module, several=_pair_key(found) in by_other))
            if known is None
            else _again(known, found, module)
        )
    return with_lost_updates(findings)


def _pair_key(found: FindingRecord) -> tuple[Any, ...]:
    return *kernel_of(found), *sorted((found.site, found.other_site))


def _words_key(found: FindingRecord, module: ModuleSites) -> tuple[Any, ...]:
    """The common key of findings that will be merged: an unrolled loop has many pairs of instructions, and few pairs of source places."""
    sites = module.site(found.site), module.site(found.other_site)
    places = (replace(site, number=0, ptx_line=0, ptx="") if site and site.file else site for site in sites)
    return found.kind, found.hazard, kernel_of(found), found.reason, found.flags, *places


def _again(first: Finding, found: FindingRecord, module: ModuleSites) -> Finding:
    """A finding in the words of an equal one. The words of the first one would remain when the two are merged."""
    buffer = buffer_of(found, found.low, found.high, module) if first.buffer else None
    more: dict[str, Any] = {"count": found.count, "ctas": found.ctas, "verified": module.fixes.get(found.index)}
    return replace(first, buffer=buffer, value=value_of(found, module), **more)


def _finding(found: FindingRecord, module: ModuleSites, *, several: bool = False) -> Finding:
    """`several`: also threads other than the one that writes the flag make the first access."""
    low, high, kind = found.low, found.high, KINDS[found.kind].name
    has_bytes = found.bytes and not is_global(found) and not in_tensor_memory(found) and kind != "barrier-misuse"
    finding = Finding(
        kind=kind,
        hazard=_hazard(found, module),
        kernel=entry_of(found, module),
        count=found.count,
        ctas=found.ctas,
        buffer=buffer_of(found, low, high, module) if has_bytes else None,
        accesses=distinct(accesses_of(found, module)),
        barrier=barrier_state(found, module),
        value=value_of(found, module),
        verified=module.fixes.get(found.index),
    )
    if found.split is not None:
        return divergence(finding, found.split, module.site(found.site), module.framework)
    pair = pair_of(found, finding.accesses, module)
    situation = EXCHANGED if is_exchanged(found, module) else situation_of(found)
    release, flag = (module.site(found.flag.fence), module.site(found.flag.write)) if found.flag is not None else (None, None)
    situation, is_first = in_one_round(kind, situation, pair[0], flag), FindingFlags.FIRST_WRITE in found.flags
    finding, pair, situation = of_a_later_round(finding, pair, release, situation, module.relations, is_first=is_first)
    finding, pair, shape = in_program_order(named_by_line(finding, module.framework), pair, module.relations, situation)
    situation = of_implied_commit(finding, pair, situation, module.relations)
    facts = facts_of(found, module) | outside_facts(found, low, high, module)
    if found.kind is Kind.UNINITIALIZED_READ and is_unused(found, module):
        return describe(finding, "unused", framework=module.framework, **facts)
    facts |= {"several": several, "position": shape, "recomputed": shape == UPDATE and _is_recomputed(pair, module)}
    facts |= {"extreme": shape == UPDATE and _all_writes(pair, module, "keeps_extreme")}
    facts |= buffer_facts(found, finding.pair, low, high, module) if shape == NEXT_ITERATION else {}
    facts |= loop_facts(pair, module.relations) if shape in (NEXT_ITERATION, LOOPED_STORE) else {}

    def in_words(finding: Finding, pair: Pair) -> Finding:
        described = describe(finding, situation, shape, framework=module.framework, **facts)
        described = explained_misuse(described, pair[0], module.relations, found.geometry.ntid)
        return blame(explained_refill(described, module.relations), situation, pair, module.relations, facts, module.framework)

    described = in_words(finding, pair)
    of_earlier_round = described.cause == RELEASED_EARLY and (finding.kind, finding.hazard) == ("data-race", "RAW")
    if of_earlier_round:  # the read should come first
        finding, pair = turned(finding, pair)
        described = in_words(finding, pair)
    described = with_late_arrivals(described, module.relations, lacked_arrivals(found))
    described = where_all_pass(described, pair, module.relations, module.framework, math.prod(found.geometry.ntid))
    return in_words_of_ranks(with_tolerance(described, found, module))


def _is_recomputed(pair: Pair, module: ModuleSites) -> bool:
    """Whether no atomic operation does the update of a pair."""
    return module.relations is not None and not any(_all_writes(pair, module, name) for name in ("combines", "keeps_extreme"))


def _all_writes(pair: Pair, module: ModuleSites, relation: str) -> bool:
    """Whether all stores of a pair have a relation to their loads."""
    writes = [site for site in pair if site is not None and site.access == "write"]
    return module.relations is not None and all(getattr(module.relations, relation)(site) for site in writes)


def _hazard(found: FindingRecord, module: ModuleSites) -> str | None:
    """As observed. For a race whose accesses are shown in the other order, the letter of (1) and (2) as they are shown: hooks say WAR of a
    stage refilled too early also if the last fill was overwritten."""
    letter = None if found.hazard is Hazard.NONE else found.hazard.name
    if not races_turned(found):
        return letter
    site = module.site(found.site)
    return HAZARDS.get((site is not None and not site.only_reads, writes_shared(found.operation)), letter)


def _deadlock(found: FindingRecord, records: Sequence[FindingRecord], module: ModuleSites) -> Finding:
    """The record of the first waiter, with those of the others: one for each place and barrier."""
    waiters = [_waiter(each, each.waiting, module) for each in (found, *_other_waiters(found, records)) if each.waiting is not None]
    finding = deadlock_of(entry_of(found, module), waiters, module.relations)
    return replace(finding, count=found.count, ctas=found.ctas)


def _other_waiters(found: FindingRecord, records: Sequence[FindingRecord]) -> list[FindingRecord]:
    """The other waiters of the CTA. Equal records of several CTAs are stored once, by the first. A CTA without its own record
    shares that one, and its other waiters belong here too."""
    waiters = [each for each in records if each.kind is Kind.WAITER and kernel_of(each) == kernel_of(found)]
    leaders = {_cta(each) for each in records if each.kind is Kind.DEADLOCK}
    return [each for each in waiters if _cta(each) == _cta(found) or _cta(each) not in leaders]


def _cta(found: FindingRecord) -> tuple[int, int, Dim3]:
    return *kernel_of(found), found.geometry.ctaid


def _waiter(found: FindingRecord, waiting: Waiting, module: ModuleSites) -> Waiter:
    """The first warp that waits at a place for a barrier, with its lanes. `threads` counts the threads of all such warps."""
    site, rank = module.site(found.site), rank_of(found, found.thread)
    waiter = Waiter(
        block=block_of(found, found.thread),
        warp=in_cta(found, found.thread) // 32,
        lanes=waiting.lanes,
        why="barrier",
        threads=waiting.threads,
        cluster_rank=rank,
        place=shown_at(site) if site is not None else {},
    )
    if found.barrier is not None:
        return replace(waiter, why="mbarrier", phase=_phase(found, found.barrier, module))
    if rank is not None and found.number == CLUSTER_BARRIER:
        return replace(waiter, why="cluster-barrier")
    return replace(waiter, barrier=found.number, arrived=waiting.arrived, expected=waiting.expected)


def _phase(found: FindingRecord, barrier: MbarrierPhase, module: ModuleSites) -> Phase:
    """The mbarrier that a waiter waits at."""
    state = STATE.unpack(barrier.state)
    return Phase(
        offset=inside(found, barrier.offset),
        phase=barrier.phase,
        pending=state["pending"],
        expected=barrier.expected,
        tx=state["tx"],
        cluster_rank=rank_of(found, found.thread),
        variable=barrier_name(found, barrier, module),
    )
