"""Facts of a device record for the words of its finding: the situation, the barrier, what lies near the bytes and around the accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consan.instrument.abi.bits import STATE
from consan.instrument.findings import FindingFlags, FindingRecord, Kind, Reason
from consan.instrument.relations import Relations
from consan.reports.catalogue.global_races import FLAG_SIDES
from consan.reports.model import Access
from consan.reports.records.bounds import extent_of, outside
from consan.reports.records.finding_records import (
    ModuleSites,
    barrier_of,
    barrier_state,
    is_global,
    layout_of,
    range_of,
)
from consan.reports.records.numbering import inside
from consan.reports.records.tensor_memory import cells_of, in_tensor_memory
from consan.reports.records.waited import last_wait
from consan.reports.waiting.deadlocks import mbarrier
from consan.reports.words.ordering import Pair
from consan.reports.words.verified import left_in_flight
from consan.reports.words.wording import called_at, place, place_of


def situation_of(found: FindingRecord) -> str | None:
    """The catalogue's situation, as far as the device reports it."""
    reason, flags = found.reason, found.flags
    if found.kind in (Kind.DATA_RACE, Kind.GLOBAL_RACE) and FindingFlags.SAME_VALUE in flags:
        return "replicated" if found.site == found.other_site else "same-value"
    situation = None if reason is Reason.NONE else reason.situation
    if in_tensor_memory(found) and found.kind is not Kind.TENSOR_MISUSE:
        return "tensor" if situation is None else f"tensor-{situation}"
    if found.kind in (Kind.DATA_RACE, Kind.GLOBAL_RACE, Kind.SCOPE, Kind.MISSING_ORDER):
        return situation
    space = "outer" if FindingFlags.GRID in flags else "global" if FindingFlags.GLOBAL in flags else ""
    return f"{space}-{situation}" if space else situation


def facts_of(found: FindingRecord, module: ModuleSites) -> dict[str, Any]:
    """The facts beside the accesses that the catalogue's words need."""
    done = found.completion
    leave = 0 if done is None else max(0, done.commits - done.group - 1)
    if found.reason is Reason.EXIT:  # one group stands for all that are in flight
        leave = 0
    leave = int(min(leave, left_in_flight(module.fixes.get(found.index))))
    facts: dict[str, Any] = {}
    if in_tensor_memory(found):
        facts["bytes"] = cells_of(found, module)
    number = found.number if done is None else done.group
    facts |= {"leave": leave, "number": number, "barrier": f"barrier {number}"}
    if state := barrier_state(found, module):
        facts["barrier"] = mbarrier(state["offset"], state.get("name", ""), state.get("cluster_rank"))
        facts |= {name: state.get(name) for name in ("phase", "parity", "expected", "tx")}
    if (waited := last_wait(found, module)) is not None:
        facts["waited"] = waited
    of_flags = found.reason.situation in (*FLAG_SIDES, "flag-before", "flag-passed", "released-before") or found.kind is Kind.MISSING_ORDER
    by_flag = FindingFlags.GRID in found.flags or of_flags
    if by_flag and found.kind is not Kind.MISSING_WAIT and found.flag is not None:
        sites = {"flag_write_at": found.flag.write, "flag_read_at": found.flag.read, "fence_at": found.flag.fence}
        facts |= {name: called_at(site) if (site := module.site(number)) is not None else None for name, number in sites.items()}
    return facts | {"shared_bytes": found.geometry.shared_bytes, "dynamic": layout_of(found, module).dynamic is not None}


def outside_facts(found: FindingRecord, low: int, high: int, module: ModuleSites) -> dict[str, str]:
    """How far accesses outside the CTA's shared memory are from the end of their variable."""
    site, touched = module.site(found.site), range_of(found)
    if found.kind is not Kind.OUT_OF_BOUNDS or is_global(found) or site is None or touched is None or module.relations is None:
        return {}
    begin = inside(found, low)
    symbol, shared = module.relations.variable(site), found.geometry.shared_bytes
    return outside(extent_of(layout_of(found, module), symbol, shared, touched[1] - touched[0]), touched, (begin, begin + high - low))


def buffer_facts(found: FindingRecord, accesses: Sequence[Access], low: int, high: int, module: ModuleSites) -> dict[str, str]:
    """The words for two iterations that use one part of an array whose parts may be meant as buffers used in turn."""
    begin = inside(found, low)
    part = layout_of(found, module).part(begin, begin + high - low)
    if part is None:
        return {}
    name, array = part
    places = " and ".join(dict.fromkeys(map(place, accesses)))
    return {
        "one_part": f"; all of these accesses are in {name}, one of the {array.dims[0]} parts of {array.name}",
        "other_part": f"; or, if the iterations are to use the parts of {array.name} in turn, let the first index change at {places}",
    }


def loop_facts(pair: Pair, relations: Relations | None) -> dict[str, str]:
    """The line of the loop that both accesses are in."""
    first, second = pair
    if relations is None or first is None or second is None:
        return {}
    loop = relations.loop(first.function, first.ptx_line, second.ptx_line)
    return {"loop_at": f" at {place_of(loop)}"} if loop is not None else {}


def lacked_arrivals(found: FindingRecord) -> int:
    """The pending arrivals of the phase that completes an operation; 0 if that phase was over."""
    barrier = barrier_of(found)
    if barrier is None:
        return 0
    state = STATE.unpack(barrier.state)
    return state["pending"] if (state["phase"] ^ barrier.phase) & 1 == 0 else 0
