"""The signals that a wait for the right phase would still lack: arrivals that come only after it.

A wait for a wrong parity returns at once, so the kernel runs on to arrivals behind a barrier. Once the parity is right, the wait
comes before these arrivals, and never ends. The report says which arrivals have to be moved too.
"""

from __future__ import annotations

from dataclasses import replace

from consan.instrument.relations import Relations, Signal
from consan.reports.counts import plural
from consan.reports.culprits.cases import access_of
from consan.reports.model import Access, Finding
from consan.reports.source.names import name_without_element, variable_name
from consan.reports.words.wording import place_of


def with_late_arrivals(finding: Finding, relations: Relations | None, lacked: int) -> Finding:
    """The missing wait, with an arrival that a barrier holds back until the wait is over.

    `lacked`: arrivals that the phase still lacked at (2).
    """
    wait = finding.culprit
    name = name_without_element((finding.barrier or {}).get("name", ""))
    if relations is None or not (name and lacked) or wait is None or finding.kind != "missing-wait" or not _is_wait(wait):
        return finding
    for arrival in _arrivals(finding.kernel, name, relations):
        barrier = relations.barrier_behind(finding.kernel, wait.ptx_line, arrival.place.ptx_line)
        if barrier is not None:
            at, barrier_at = place_of(arrival.place), place_of(barrier)
            phase = f"that phase still lacked {plural(lacked, 'arrival')}"
            why = f"{phase}, and the arrival at {at} comes too late for this wait: after the barrier at {barrier_at}"
            fix = f"{finding.fix}; if the arrival at {at} belongs to that phase, move it before the barrier at {barrier_at}"
            accesses = (*finding.accesses, access_of(arrival))
            return replace(finding, accesses=accesses, message=f"{finding.message}; {why}", fix=fix)
    return finding


def _is_wait(access: Access) -> bool:
    return access.op.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))


def _arrivals(kernel: str, name: str, relations: Relations) -> list[Signal]:
    found = (each for each in relations.signals(kernel) if each.verb in ("arrive", "announce") and each.barrier is None)
    return [each for each in found if "arrive" in each.opcode.split(".") and variable_name(each.symbol) == name]
