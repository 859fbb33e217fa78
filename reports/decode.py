"""Device records to findings: who, where, what is missing.

Input are the ring's records and the merge table (layout in instrument/layout.py) and the site tables of the modules; PTX is
never looked at. (1) of a finding is the access that came first, (2) the one that met it; for a copy in flight (1) is the copy.

An uninitialised read that an unordered write explains later is one defect, not two: the runtime reports the pair as a data
race and counts the explained bytes; when every uninitialised read of a site is explained, only the race is kept.

What it cannot tell: which CTA the second access of a merged finding belonged to in later occurrences (the first is kept).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.instrument.layout import (
    FLAG_OTHER_ATOMIC,
    FLAG_SAME_VALUE,
    READ_SITE_LIMIT,
    Hazard,
    Kind,
    Operation,
    Reason,
)
from consan.instrument.sites import Site
from consan.reports.kinds import describe
from consan.reports.model import Access, AsyncInfo, Buffer, Dim3, Finding, Frame

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
    Reason.DIVERGENT: "divergent",
    Reason.NO_PROXY_FENCE: "no-proxy-fence",
    Reason.WRITER_NO_FENCE: "writer-no-fence",
    Reason.READ_NO_FENCE: "read-no-fence",
    Reason.COPY_NO_FENCE: "copy-no-fence",
    Reason.OTHER_LANES: "other-lanes",
    Reason.AT_EXIT: "exit",
    Reason.OTHER_ISSUER: "other-issuer",
}
_ROLES: Final = {"read": "read", "write": "write", "rmw": "atomic read-modify-write", "none": "barrier"}
#: What an operation of the device's number is called (`AsyncInfo.kind`), and its role in words.
_OPERATIONS: Final = {
    Operation.BULK_STORE: ("bulk store", "asynchronous read"),
    Operation.BULK_LOAD: ("bulk load", "asynchronous write"),
    Operation.WGMMA: ("wgmma", "operand read"),
    Operation.STORE_ASYNC: ("st.async", "asynchronous write"),
}


@dataclass(frozen=True)
class ModuleSites:
    """What the host knows of one instrumented module: sites by number (1-based) and kernels by index."""

    sites: Sequence[Site]
    entries: Sequence[str]

    def site(self, number: int) -> Site | None:
        """The site, or None where the device did not keep it."""
        return self.sites[number - 1] if 1 <= number <= len(self.sites) and number != READ_SITE_LIMIT else None


def decode(records: Records, table: Records | None, modules: Mapping[int, ModuleSites]) -> list[Finding]:
    """Findings of all valid records; counts from the merge table if it could be read."""
    valid = [record for record in records if record["valid"] & 1]
    explained = _explained(valid, table)
    findings = []
    for record in valid:
        kind = Kind(int(record["kind"]))
        key = (int(record["module"]), int(record["site"]))
        if kind == Kind.READ_EXPLAINED or (kind == Kind.UNINITIALIZED_READ and _count(record, table) <= explained.get(key, 0)):
            continue
        findings.append(_finding(record, table, modules[int(record["module"])]))
    return findings


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
        hazard=None if hazard is Hazard.NONE else hazard.name,
        kernel=module.entries[int(record["entry"])],
        count=count,
        ctas=ctas,
        buffer=None if _is_global(record) or kind is Kind.BARRIER_MISUSE else Buffer("shared memory", "shared", low, high - low),
        accesses=_accesses(record, kind, hazard, module),
    )
    return describe(finding, _situation(record, kind), **_facts(record))


def _merged(record: Any, table: Records | None) -> tuple[int, int, int, int]:
    begin = int(record["offset"])
    if table is None:
        return 1, 1, begin, begin + int(record["bytes"])
    entry = table[int(record["table"])]
    # The device keeps the complement of the lower bound, so that zeroed memory is the identity of its maximum.
    low = int(~entry["low"]) & 0xFFFFFFFF
    return max(1, int(entry["count"])), max(1, int(entry["ctas"])), low, int(entry["high"])


def _is_global(record: Any) -> bool:
    return int(record["reason"]) == Reason.SOURCE_OVERWRITTEN


def _situation(record: Any, kind: Kind) -> str | None:
    if kind is Kind.DATA_RACE and int(record["flags"]) & FLAG_SAME_VALUE:
        return "same-value"
    return _SITUATIONS.get(Reason(int(record["reason"])))


def _facts(record: Any) -> dict[str, Any]:
    leave = max(0, int(record["commits"]) - int(record["group"]) - 1)
    barrier = f"barrier {int(record['group'])}"
    return {"leave": leave, "barrier": barrier, "shared_bytes": f"{int(record['shared_bytes']):,} bytes"}


def _accesses(record: Any, kind: Kind, hazard: Hazard, module: ModuleSites) -> tuple[Access, ...]:
    own = _access(record, "site", "thread", module, _operation(record, "own_operation"))
    if kind in (Kind.UNINITIALIZED_READ, Kind.OUT_OF_BOUNDS, Kind.LIFETIME) or (kind is Kind.BARRIER_MISUSE and not record["other_site"]):
        return (own,)
    action = _operation(record, "operation")
    if kind is Kind.MISSING_WAIT and action is None and not record["own_operation"]:
        action = AsyncInfo("cp.async", group=int(record["group"]))
    other = _access(record, "other_site", "other_thread", module, action)
    if int(record["flags"]) & FLAG_OTHER_ATOMIC and not other.role:
        other = replace(other, role=_ROLES["rmw"])
    if not other.role:
        other = replace(other, role="read" if hazard is Hazard.WAR else "write")
    return (other, own)


def _operation(record: Any, name: str) -> AsyncInfo | None:
    number = int(record[name])
    if not number:
        return None
    word = _OPERATIONS[Operation(number)][0]
    if int(record["barrier"]):
        return AsyncInfo(word, barrier=int(record["barrier"]) - 1, phase=int(record["phase"]))
    return AsyncInfo(word, group=int(record["group"]) if name == "operation" or not int(record["operation"]) else None)


_ROLE_OF_KIND: Final = {word: role for word, role in _OPERATIONS.values()} | {"cp.async": "asynchronous copy"}


def _access(record: Any, site_field: str, thread_field: str, module: ModuleSites, action: AsyncInfo | None) -> Access:
    site = module.site(int(record[site_field]))
    thread = int(record[thread_field])
    begin = int(record["address"]) if _is_global(record) else int(record["offset"])
    place = Access(
        role="",
        op="",
        block=_dim3(record["ctaid"]),
        thread=unflatten(thread, _dim3(record["ntid"])),
        warp=thread // 32,
        lane=thread % 32,
        bytes=(begin, begin + int(record["bytes"])) if record["bytes"] else None,
        asynchronous=action,
        proxy="async" if action is not None and action.kind in ("bulk store", "bulk load", "wgmma") else "generic",
        space="global" if _is_global(record) else "shared",
    )
    if site is None:
        return place
    if action is None and site.family == "cp.async":
        action = AsyncInfo("cp.async")
    return replace(
        place,
        role=_ROLE_OF_KIND[action.kind] if action is not None else _ROLES[site.access],
        op=site.opcode,
        file=site.file or "",
        line=site.line or 0,
        column=site.column or 0,
        ptx_line=site.ptx_line,
        ptx=site.ptx,
        inlined=tuple(Frame(f.function or "", f.file, f.line, f.column) for f in site.inlined),
        asynchronous=action,
    )


def _dim3(values: Any) -> Dim3:
    x, y, z = (int(v) for v in values)
    return (x, y, z)


def unflatten(thread: int, block: Dim3) -> Dim3:
    """Linear thread index to (x, y, z), x fastest (ISA "Special Registers: %tid")."""
    return (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
