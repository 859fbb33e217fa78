"""Turns device records into findings: who, where, what is missing.

Inputs are the ring's records, the merge table (layout in instrument/layout.py) and the site tables of the modules, never
PTX. (1) of a finding is the access that came first, (2) the one that conflicts with it. For a missing wait (1) is the operation in
flight; for a stage refilled too early (2) is the refill, whichever the device saw first.

An uninitialised read that a later, unordered write explains is one defect: the runtime reports the pair as a data
race and counts the explained bytes. If all uninitialised reads of a site are explained, only the race is kept.

Not known: the CTA of the second access in later occurrences of a merged finding (the first one is kept).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.instrument.layout import (
    FLAG_GLOBAL,
    FLAG_OTHER_ATOMIC,
    FLAG_SAME_VALUE,
    READ_SITE_LIMIT,
    Hazard,
    Kind,
    Operation,
    Reason,
)
from consan.instrument.relations import Relations
from consan.instrument.sites import Site
from consan.reports import frameworks
from consan.reports.culprits import blame
from consan.reports.deadlocks import Phase, deadlock, mbarrier
from consan.reports.divergence import TOGETHER, Split, divergence
from consan.reports.kinds import describe
from consan.reports.model import Access, AsyncInfo, Buffer, Dim3, Finding
from consan.reports.ordering import Pair, in_program_order
from consan.reports.places import located, shown_at
from consan.reports.variables import Layout

Records = npt.NDArray[np.void]

KIND_NAMES: Final = {
    Kind.DATA_RACE: "data-race",
    Kind.MISSING_WAIT: "missing-wait",
    Kind.UNINITIALIZED_READ: "uninitialized-read",
    Kind.OUT_OF_BOUNDS: "out-of-bounds",
    Kind.BARRIER_MISUSE: "barrier-misuse",
    Kind.MISSING_PROXY_FENCE: "missing-proxy-fence",
    Kind.LIFETIME: "lifetime",
    Kind.DEADLOCK: "deadlock",
    Kind.SCOPE: "scope",
}
_SITUATIONS: Final = {
    Reason.NO_BARRIER: "no-barrier",
    Reason.NO_WARP_SYNC: "no-warp-sync",
    Reason.NOT_COMMITTED: "not-committed",
    Reason.NOT_WAITED: "not-waited",
    Reason.WAITED_NO_BARRIER: "waited-no-barrier",
    Reason.OVERLAPPING_COPIES: "overlapping-copies",
    Reason.SOURCE_OVERWRITTEN: "source-overwritten",
    Reason.COUNTS_DISAGREE: "counts-disagree",
    Reason.SHARED_ID: "shared-id",
    Reason.NOT_INITIALISED: "not-initialised",
    Reason.INVALIDATED: "invalidated",
    Reason.INITIALISED_TWICE: "initialised-twice",
    Reason.INIT_NOT_PUBLISHED: "init-not-published",
    Reason.BYTES_USED: "bytes-used",
    Reason.TOO_MANY_ARRIVALS: "too-many-arrivals",
    Reason.PHASE_LAPPED: "phase-lapped",
    Reason.TX_RANGE: "tx-range",
    Reason.COUNT_RANGE: "count-range",
    Reason.NO_COMPLETE: "no-complete",
    Reason.SIGNALS_PENDING: "signals-pending",
    Reason.WAITERS_PENDING: "waiters-pending",
    Reason.DIVERGENT: "divergent",
    Reason.NO_PROXY_FENCE: "no-proxy-fence",
    Reason.WRITER_NO_FENCE: "writer-no-fence",
    Reason.READ_NO_FENCE: "read-no-fence",
    Reason.COPY_NO_FENCE: "copy-no-fence",
    Reason.OWN_WARP_WAITED: "own-warp-waited",
    Reason.OTHER_LANES: "other-lanes",
    Reason.READ_WAIT_ONLY: "read-wait-only",
    Reason.MAP_CHANGED: "map-changed",
    Reason.POLL_NO_FENCE: "poll-no-fence",
    Reason.MAP_NOT_ACQUIRED: "map-not-acquired",
    Reason.MAP_NOT_RELEASED: "map-not-released",
    Reason.AT_EXIT: "exit",
    Reason.OTHER_ISSUER: "other-issuer",
    Reason.ARRIVE_SCOPE: "arrive-scope",
    Reason.WAIT_SCOPE: "wait-scope",
    Reason.NOT_STARTED: "not-started",
    Reason.AFTER_EXIT: "after-exit",
    Reason.REFILLED: "refilled",
}
_ROLES: Final = {"read": "read", "write": "write", "rmw": "atomic read-modify-write", "none": "barrier"}
# Operation number of the device -> name (`AsyncInfo.kind`).
_OPERATIONS: Final = {
    Operation.BULK_STORE: "bulk store",
    Operation.BULK_LOAD: "bulk load",
    Operation.WGMMA: "wgmma",
    Operation.STORE_ASYNC: "st.async",
    Operation.BULK_SOURCE: "bulk copy",
}
# The same derived from the site, for records without it: (family, whether it writes shared memory).
_OPERATION_OF_SITE: Final = {
    ("cp.async", True): "cp.async",
    ("bulk", True): "bulk load",
    ("tensor", True): "bulk load",
    ("bulk", False): "bulk store",
    ("tensor", False): "bulk store",
    ("wgmma", False): "wgmma",
}
# An operation's role, if it differs from its name.
_ROLE_OF_OPERATION: Final = {"cp.async": "asynchronous copy", "wgmma": "operand read", "st.async": "asynchronous store"}
_ASYNC_PROXY: Final = ("bulk store", "bulk load", "bulk copy", "wgmma")
#: What an instruction does to an mbarrier.
_BARRIER_ROLES: Final = {
    "mbarrier.init": "initialisation",
    "mbarrier.inval": "invalidation",
    "mbarrier.arrive": "arrival",
    "mbarrier.arrive_drop": "arrival",
    "mbarrier.expect_tx": "announcement of bytes",
    "mbarrier.complete_tx": "completion of bytes",
    "mbarrier.test_wait": "wait",
    "mbarrier.try_wait": "wait",
    "cp.async.mbarrier": "arrival",
}
# The word that holds an mbarrier's state (runtime/mbarrier.cuh): phase, pending arrivals, bytes still to come (signed).
_PENDING, _COUNT_BITS, _TX_BITS = 22, 20, 22
_MBARRIER_BYTES = 8
# Instructions that a whole warp executes together, without barriers.
_WARP_FAMILIES: Final = ("mma", "wmma", "ldmatrix", "stmatrix", "wgmma", "special", "tcgen05")
_CLUSTER_BARRIER = 16  # runtime/barrier.cuh


@dataclass(frozen=True)
class ModuleSites:
    """One instrumented module as the host knows it: sites by number (1-based) and kernels by index."""

    sites: Sequence[Site]
    entries: Sequence[str]
    framework: str = frameworks.CUDA  # the framework whose words the fixes use
    layout: Callable[[str], Layout] = lambda entry: Layout()  # of a kernel's shared memory
    address_name: Callable[[str, int, int], str] = lambda entry, begin, end: ""  # of bytes of global memory that a kernel touched
    relations: Relations | None = None  # what the text tells of how they follow each other

    def site(self, number: int) -> Site | None:
        """The site, or None where the device did not keep it."""
        return self.sites[number - 1] if 1 <= number <= len(self.sites) and number != READ_SITE_LIMIT else None


def decode(records: Records, table: Records | None, modules: Mapping[int, ModuleSites]) -> list[Finding]:
    """Findings of all valid records; counts from the merge table if it could be read."""
    valid = [record for record in records if record["valid"] & 1]
    explained = _explained(valid, table)
    unwaited = {_kernel(r) for r in valid if int(r["kind"]) == Kind.MISSING_WAIT and _is_copy(r)}
    findings = []
    for record in valid:
        kind = Kind(int(record["kind"]))
        if kind == Kind.WAITER:
            continue  # reported with the deadlock of its CTA
        if kind == Kind.DEADLOCK:
            findings.append(_deadlock(record, valid, table, modules[int(record["module"])]))
            continue
        key = (int(record["module"]), int(record["site"]))
        if kind == Kind.READ_EXPLAINED or (kind == Kind.UNINITIALIZED_READ and _count(record, table) <= explained.get(key, 0)):
            continue
        if kind == Kind.LIFETIME and int(record["reason"]) == Reason.AT_EXIT and _is_copy(record) and _kernel(record) in unwaited:
            continue  # the missing wait is the same, and the conflicts before the exit say more
        findings.append(_finding(record, table, modules[int(record["module"])]))
    return findings


def _kernel(record: Any) -> tuple[int, int]:
    return int(record["module"]), int(record["entry"])


def _is_copy(record: Any) -> bool:
    """Whether the operation of a missing wait, or of the end of a CTA, is a cp.async."""
    return not record["operation"] and not record["own_operation"]


def _count(record: Any, table: Records | None) -> int:
    return int(table[int(record["table"])]["count"]) if table is not None else 1


def _explained(records: Iterable[Any], table: Records | None) -> dict[tuple[int, int], int]:
    totals: dict[tuple[int, int], int] = {}
    for record in records:
        if int(record["kind"]) == Kind.READ_EXPLAINED:
            key = (int(record["module"]), int(record["site"]))
            totals[key] = totals.get(key, 0) + _count(record, table)
    return totals


def _finding(record: Any, table: Records | None, module: ModuleSites) -> Finding:
    kind = Kind(int(record["kind"]))
    hazard = Hazard(int(record["hazard"]))
    count, ctas, low, high = _merged(record, table)
    finding = Finding(
        kind=KIND_NAMES[kind],
        hazard=_hazard(record, kind, hazard, module),
        kernel=module.entries[int(record["entry"])],
        count=count,
        ctas=ctas,
        buffer=None if _is_global(record) or kind is Kind.BARRIER_MISUSE or not record["bytes"] else _buffer(record, low, high, module),
        accesses=_accesses(record, kind, hazard, module),
        barrier=_barrier(record, module),
    )
    if int(record["reason"]) == Reason.DIVERGENT:
        return divergence(finding, Split.of(record), module.site(int(record["site"])), module.framework)
    pair = _pair(record, finding.accesses, module)
    finding, pair, shape = in_program_order(finding, pair, module.relations)
    unused = kind in _OF_VALUES and _is_unused(record, module)
    if unused and kind is Kind.UNINITIALIZED_READ:
        return describe(finding, "unused", framework=module.framework, **_facts(record, module))
    situation, facts = _situation(record, kind), _facts(record, module)
    described = describe(finding, situation, shape, framework=module.framework, **facts)
    described = blame(described, situation, pair, module.relations, facts, module.framework)
    return replace(described, severity="note", message=f"{described.message}; the loaded value is not used") if unused else described


# Kinds that harm only the loaded value.
_OF_VALUES = (Kind.DATA_RACE, Kind.MISSING_WAIT, Kind.UNINITIALIZED_READ)


def _is_unused(record: Any, module: ModuleSites) -> bool:
    sites = (module.site(int(record[name])) for name in ("site", "other_site"))
    return any(site is not None and site.unused for site in sites)


def _hazard(record: Any, kind: Kind, hazard: Hazard, module: ModuleSites) -> str | None:
    """As observed. For a stage refilled too early the device says WAR also if the last fill was overwritten."""
    site = module.site(int(record["site"]))
    overwritten = kind is Kind.DATA_RACE and hazard is Hazard.WAR and record["operation"] and site is not None and site.access != "read"
    return "WAW" if overwritten else None if hazard is Hazard.NONE else hazard.name


def _deadlock(record: Any, records: Sequence[Any], table: Records | None, module: ModuleSites) -> Finding:
    """The record of the first waiter, with those of the others: one for each place and barrier."""
    group = [record, *_other_waiters(record, records)]
    phases = [_phase(r, module) for r in group if r["barrier"]]
    numbers = [int(r["other_epoch"]) for r in group if not r["barrier"] and not _of_cluster(r)]
    ranks = [_rank(r, int(r["thread"])) or 0 for r in group if _of_cluster(r)]
    finding = deadlock(module.entries[int(record["entry"])], [_waiter(r, module) for r in group], phases, numbers, ranks)
    count, ctas, _, _ = _merged(record, table)
    return replace(finding, count=count, ctas=ctas)


def _other_waiters(record: Any, records: Sequence[Any]) -> list[Any]:
    """The other waiters of the CTA. Equal records of several CTAs are stored once, by the first. A CTA without its own record
    shares that one, and its other waiters belong here too."""
    waiters = [r for r in records if int(r["kind"]) == Kind.WAITER and _kernel(r) == _kernel(record)]
    leaders = {_cta(r) for r in records if int(r["kind"]) == Kind.DEADLOCK}
    return [r for r in waiters if _cta(r) == _cta(record) or _cta(r) not in leaders]


def _cta(record: Any) -> tuple[int, int, Dim3]:
    return *_kernel(record), _dim3(record["ctaid"])


def _of_cluster(record: Any) -> bool:
    """Whether a waiter waits at the cluster barrier, which is numbered after those of the CTA."""
    return bool(record["cta_threads"]) and not record["barrier"] and int(record["other_epoch"]) == _CLUSTER_BARRIER


def _phase(record: Any, module: ModuleSites) -> Phase:
    """The mbarrier that a waiter's record describes."""
    word = int(record["barrier_state"])
    tx = word & (1 << _TX_BITS) - 1
    return Phase(
        offset=_inside(record, int(record["barrier"]) - 1),
        phase=int(record["phase"]),
        pending=word >> _PENDING & (1 << _COUNT_BITS) - 1,
        expected=int(record["barrier_expected"]),
        tx=tx - (1 << _TX_BITS) if tx >> _TX_BITS - 1 else tx,
        cluster_rank=_rank(record, int(record["thread"])),
        variable=_barrier_name(record, module),
    )


def _waiter(record: Any, module: ModuleSites) -> dict[str, Any]:
    """The first warp that waits at a place for a barrier, with its lanes. `threads` counts the threads of all such warps."""
    site, first = module.site(int(record["site"])), _in_cta(record, int(record["thread"]))
    waiter: dict[str, Any] = {"block": list(_block(record, int(record["thread"]))), "warp": first // 32, "lanes": int(record["commits"])}
    waiter |= {"threads": int(record["group"]), "why": "mbarrier" if record["barrier"] else "barrier"}
    if record["cta_threads"]:
        waiter["cluster_rank"] = _rank(record, int(record["thread"]))
    if record["barrier"]:
        waiter |= _phase(record, module).as_dict("mbarrier")
    elif _of_cluster(record):
        waiter["why"] = "cluster-barrier"
    else:
        counts = {"arrived": int(record["barrier_state"]), "expected": int(record["barrier_expected"])}
        waiter |= {"barrier": int(record["other_epoch"]), **counts}
    if site is not None:
        waiter |= shown_at(site)
    return waiter


def _merged(record: Any, table: Records | None) -> tuple[int, int, int, int]:
    begin = int(record["offset"])
    if table is None:
        return 1, 1, begin, begin + int(record["bytes"])
    entry = table[int(record["table"])]
    # The device keeps the complement of the lower bound, so that zeroed memory is the identity of its maximum.
    low, high = int(~entry["low"]) & 0xFFFFFFFF, int(entry["high"])
    # An offset below the CTA's memory is a negative number in 32 bits, whose end wraps.
    high = high if high > low else low + int(record["bytes"])
    return max(1, int(entry["count"])), max(1, int(entry["ctas"])), low, high


def _is_global(record: Any) -> bool:
    return int(record["reason"]) == Reason.SOURCE_OVERWRITTEN or bool(int(record["flags"]) & FLAG_GLOBAL)


def _name(record: Any, module: ModuleSites, touched: tuple[int, int]) -> str:
    if _is_global(record):
        return module.address_name(module.entries[int(record["entry"])], *touched)
    outside = int(record["kind"]) == Kind.OUT_OF_BOUNDS
    return "" if outside else _layout(record, module).name(*touched)


def _situation(record: Any, kind: Kind) -> str | None:
    if kind is Kind.DATA_RACE and int(record["flags"]) & FLAG_SAME_VALUE:
        return "replicated" if int(record["site"]) == int(record["other_site"]) else "same-value"
    situation = _SITUATIONS.get(Reason(int(record["reason"])))
    return f"global-{situation}" if int(record["flags"]) & FLAG_GLOBAL else situation


def _facts(record: Any, module: ModuleSites) -> dict[str, Any]:
    leave = max(0, int(record["commits"]) - int(record["group"]) - 1)
    facts: dict[str, Any] = {"leave": leave, "barrier": f"barrier {int(record['group'])}"}
    if state := _barrier(record, module):
        facts["barrier"] = mbarrier(state["offset"], state.get("name", ""), state.get("cluster_rank"))
        facts |= {name: state.get(name) for name in ("phase", "parity", "expected", "tx")}
    return facts | {"shared_bytes": f"{int(record['shared_bytes']):,} bytes"}


def _barrier(record: Any, module: ModuleSites) -> dict[str, Any] | None:
    """The mbarrier of a finding: its phase (for an operation, the one that completes it) and its counts at that moment."""
    if not record["barrier"]:
        return None
    phase, word = int(record["phase"]), int(record["barrier_state"])
    place: dict[str, Any] = {"offset": _inside(record, int(record["barrier"]) - 1)}
    place |= {"name": name} if (name := _barrier_name(record, module)) else {}
    if record["cta_bytes"]:
        place["cluster_rank"] = (int(record["barrier"]) - 1) // int(record["cta_bytes"])
    if not word and not record["barrier_expected"]:  # never initialised: nothing is known
        return place
    tx = word & (1 << _TX_BITS) - 1
    known = place | {"phase": phase, "parity": phase & 1, "expected": int(record["barrier_expected"])}
    if int(record["kind"]) != Kind.BARRIER_MISUSE:  # the barrier may be phases ahead of the one that completes an operation
        return known
    return known | {"pending": word >> _PENDING & (1 << _COUNT_BITS) - 1, "tx": tx - (1 << _TX_BITS) if tx >> _TX_BITS - 1 else tx}


def _barrier_name(record: Any, module: ModuleSites) -> str:
    """`full[0]`, if the layout knows the variable."""
    offset = _inside(record, int(record["barrier"]) - 1)
    return _layout(record, module).name(offset, offset + _MBARRIER_BYTES)


def _layout(record: Any, module: ModuleSites) -> Layout:
    return module.layout(module.entries[int(record["entry"])])


def _accesses(record: Any, kind: Kind, hazard: Hazard, module: ModuleSites) -> tuple[Access, ...]:
    action, own_action = _actions(record, kind, module)
    own = _access(record, "site", "thread", module, own_action)
    if kind in (Kind.UNINITIALIZED_READ, Kind.OUT_OF_BOUNDS, Kind.LIFETIME) or (kind is Kind.BARRIER_MISUSE and not record["other_site"]):
        return (own,)
    other = _access(record, "other_site", "other_thread", module, action)
    if int(record["flags"]) & FLAG_OTHER_ATOMIC and not other.role:
        other = replace(other, role=_ROLES["rmw"])
    if not other.role:
        other = replace(other, role="read" if hazard is Hazard.WAR else "write")
    turned = int(record["reason"]) == Reason.DIVERGENT or _turned(kind, hazard, action, own_action)
    return (own, other) if turned else (other, own)


def _pair(record: Any, accesses: Sequence[Access], module: ModuleSites) -> Pair:
    """The sites of (1) and (2)."""
    own, other = (module.site(int(record[name])) for name in ("site", "other_site"))
    if len(accesses) < 2:
        return own, None
    first_is_own = own is not None and (own.ptx_line, own.opcode) == (accesses[0].ptx_line, accesses[0].op)
    return (own, other) if first_is_own else (other, own)


def _turned(kind: Kind, hazard: Hazard, action: AsyncInfo | None, own_action: AsyncInfo | None) -> bool:
    """Whether the record's second access is (1)."""
    if kind is Kind.MISSING_WAIT:
        return action is None and own_action is not None
    return kind is Kind.DATA_RACE and hazard is Hazard.WAR and action is not None


def _actions(record: Any, kind: Kind, module: ModuleSites) -> tuple[AsyncInfo | None, AsyncInfo | None]:
    """The operations behind the other access and behind the own one. Barrier, phase and group belong to the other's, if any."""
    numbers = int(record["operation"]), int(record["own_operation"])
    if kind in (Kind.LIFETIME, Kind.UNINITIALIZED_READ):
        numbers = 0, numbers[1]
    if kind is Kind.MISSING_WAIT and not any(numbers):
        return AsyncInfo("cp.async", group=int(record["group"])), None
    other, own = (AsyncInfo(_OPERATIONS[Operation(number)]) if number else None for number in numbers)
    return (_signalled(other, record, module), own) if other else (None, own and _signalled(own, record, module))


def _signalled(action: AsyncInfo, record: Any, module: ModuleSites) -> AsyncInfo:
    """Add the phase or group that signals completion, if the device recorded it."""
    if int(record["barrier"]):
        offset = _inside(record, int(record["barrier"]) - 1)
        return replace(action, barrier=offset, phase=int(record["phase"]), barrier_name=_barrier_name(record, module))
    grouped = action.kind in ("bulk store", "wgmma") and int(record["operation"])
    return replace(action, group=int(record["group"])) if grouped else action


def _access(record: Any, site_field: str, thread_field: str, module: ModuleSites, action: AsyncInfo | None) -> Access:
    site = module.site(int(record[site_field]))
    thread = int(record[thread_field])
    begin = int(record["address"]) if _is_global(record) else _inside(record, int(record["offset"]))
    inside = _in_cta(record, thread)
    if action is None and site is not None:
        action = _operation_of(site)
    touched = _range(record, site_field, begin)
    place = Access(
        role="",
        op="",
        name=_name(record, module, touched) if touched else "",
        block=_block(record, thread),
        cluster_rank=_rank(record, thread),
        thread=unflatten(inside, _dim3(record["ntid"])),
        warp=inside // 32,
        lane=inside % 32,
        bytes=touched,
        asynchronous=action,
        proxy="async" if action is not None and action.kind in _ASYNC_PROXY else "generic",
        space="global" if _is_global(record) else "shared",
    )
    if site is None:
        return place
    return replace(
        place,
        role=_role(site, action),
        op=site.opcode,
        **located(site),
    )


def _range(record: Any, site_field: str, begin: int) -> tuple[int, int] | None:
    """The bytes of an access, or those of the whole operation if the device recorded them (`address`: begin, and the end above it)."""
    low, high = int(record["address"]) & 0xFFFFFFFF, int(record["address"]) >> 32
    low, high = _inside(record, low), high and _inside(record, low) + high - low
    operation = "other_site" if record["operation"] and int(record["kind"]) != Kind.LIFETIME else "site" if record["own_operation"] else ""
    if high and not _is_global(record) and site_field == operation:
        return low, high
    return (begin, begin + int(record["bytes"])) if record["bytes"] else None


def _operation_of(site: Site) -> AsyncInfo | None:
    if site.opcode.startswith(("st.async", "red.async")):
        return AsyncInfo("st.async")
    word = _OPERATION_OF_SITE.get((site.family, site.access in ("write", "rmw") or site.family == "cp.async"))
    return AsyncInfo(word) if word else None


def _role(site: Site, action: AsyncInfo | None) -> str:
    if action is not None:
        return _ROLE_OF_OPERATION.get(action.kind, action.kind)
    if site.family == "warp-collective" or (site.access == "none" and site.family in _WARP_FAMILIES):
        return TOGETHER
    named = site.family == "mbarrier" and _BARRIER_ROLES.get(".".join(site.opcode.split(".")[: 3 if site.opcode.startswith("cp") else 2]))
    return named or _ROLES[site.access]


# In clusters, thread numbers and shared-memory offsets run through all CTAs (runtime/base.cuh).


def _rank(record: Any, thread: int) -> int | None:
    """The rank of a thread's CTA in its cluster."""
    return thread // int(record["cta_threads"]) if record["cta_threads"] else None


def _in_cta(record: Any, thread: int) -> int:
    return thread % int(record["cta_threads"]) if record["cta_threads"] else thread


def _inside(record: Any, offset: int) -> int:
    """The offset in the CTA's shared memory. The device counts modulo 2**32, and a kernel may go below the first byte."""
    return offset % int(record["cta_bytes"]) if record["cta_bytes"] else offset - (offset >> 31 << 32)


def _block(record: Any, thread: int) -> Dim3:
    """%ctaid of a thread's CTA. The record holds that of the CTA which wrote it."""
    own, rank, shape = _dim3(record["ctaid"]), _rank(record, thread), _dim3(record["cluster"])
    if rank is None:
        return own
    here, there = unflatten(int(record["rank"]), shape), unflatten(rank, shape)
    x, y, z = (o - h + t for o, h, t in zip(own, here, there, strict=True))
    return (x, y, z)


def _buffer(record: Any, low: int, high: int, module: ModuleSites) -> Buffer:
    """The bytes in conflict. In a cluster those of one CTA: the first, if several are equal."""
    layout = _layout(record, module)
    if not record["cta_bytes"]:
        begin = _inside(record, low)
        return Buffer(layout.region(begin, begin + high - low) or "shared memory", "shared", begin, high - low)
    owner, last = low // int(record["cta_bytes"]), (high - 1) // int(record["cta_bytes"])
    if owner != last:
        low, high = int(record["offset"]), int(record["offset"]) + int(record["bytes"])
        owner = low // int(record["cta_bytes"])
    begin = _inside(record, low)
    name = layout.region(begin, begin + high - low) or "shared memory"
    return Buffer(f"{name} of the CTA of rank {owner}", "shared", begin, high - low)


def _dim3(values: Any) -> Dim3:
    x, y, z = (int(v) for v in values)
    return (x, y, z)


def unflatten(thread: int, block: Dim3) -> Dim3:
    """Linear thread index to (x, y, z), x fastest (ISA "Special Registers: %tid")."""
    return (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
