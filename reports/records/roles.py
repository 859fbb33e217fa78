"""The accesses of a finding: who did what where, and the bytes in conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from consan.instrument import surfaces
from consan.instrument.findings import KINDS, FindingFlags, FindingRecord, Hazard, Kind, Operation
from consan.instrument.sites import Site
from consan.reports.model import Access, AsyncInfo, Buffer
from consan.reports.records.divergence import TOGETHER
from consan.reports.records.finding_records import (
    ModuleSites,
    barrier_state,
    entry_of,
    is_copy,
    is_global,
    layout_of,
    range_of,
)
from consan.reports.records.numbering import in_cta, inside, place_of, rank_of, unflatten
from consan.reports.records.tensor_memory import SPACE as TENSOR_SPACE, cells_of, in_tensor_memory, role_of
from consan.reports.source.places import located
from consan.reports.words.ordering import Pair

HAZARDS: Final = {(True, False): "RAW", (False, True): "WAR", (True, True): "WAW"}  # by: (1) writes, (2) writes

SURFACE: Final = "surface"  # the family, the space and the proxy
TEXTURE: Final = "texture"  # the family and the proxy
_ROLES: Final = {"read": "read", "write": "write", "rmw": "atomic read-modify-write", "none": "barrier"}
# Operation number of the device -> name (`AsyncInfo.kind`).
_OPERATIONS: Final = {
    Operation.BULK_STORE: "bulk store",
    Operation.BULK_LOAD: "bulk load",
    Operation.WGMMA: "wgmma",
    Operation.STORE_ASYNC: "st.async",
    Operation.BULK_SOURCE: "bulk copy",
    Operation.LAUNCH_REQUEST: "try_cancel",
    Operation.TCGEN05_MMA: "tcgen05.mma",
    Operation.TCGEN05_CP: "tcgen05.cp",
    Operation.TCGEN05_SHIFT: "tcgen05.shift",
    Operation.TCGEN05_LD: "tcgen05.ld",
    Operation.TCGEN05_ST: "tcgen05.st",
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
_ASYNC_PROXY: Final = ("bulk store", "bulk load", "bulk copy", "try_cancel", "wgmma", "tcgen05.mma", "tcgen05.cp")
#: The effect of an instruction on an mbarrier.
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
# Instructions that a whole warp executes together, without barriers.
_WARP_FAMILIES: Final = ("mma", "wmma", "ldmatrix", "stmatrix", "wgmma", "special", "tcgen05")
_MISUSES: Final = (Kind.BARRIER_MISUSE, Kind.DIVERGENCE, Kind.TENSOR_MISUSE, Kind.LAUNCH_MISUSE)  # with one side, or two


def accesses_of(found: FindingRecord, module: ModuleSites) -> tuple[Access, ...]:
    """(1) and (2), or the one access."""
    action, own_action = _actions(found, module)
    own = _access(found, found.site, found.thread, module, own_action)
    if not KINDS[found.kind].two_sides or (found.kind in _MISUSES and not found.other_site):
        return (own,)
    other = _access(found, found.other_site, found.other_thread, module, action)
    if FindingFlags.OTHER_ATOMIC in found.flags and not other.role:
        other = replace(other, role=_ROLES["rmw"])
    if not other.role:
        other = replace(other, role="read" if found.hazard is Hazard.WAR else "write")
    if found.kind is Kind.BARRIER_MISUSE and (own.site, own.thread, own.block) == (other.site, other.thread, other.block):
        return (own,)  # in two iterations of a loop
    turned = found.kind is Kind.DIVERGENCE or races_turned(found) or _waits_turned(found, action, own_action)
    return (own, other) if turned else (other, own)


def pair_of(found: FindingRecord, accesses: Sequence[Access], module: ModuleSites) -> Pair:
    """The sites of (1) and (2)."""
    own, other = module.site(found.site), module.site(found.other_site)
    if len(accesses) < 2:
        return own, None
    first_is_own = own is not None and (own.ptx_line, own.opcode) == (accesses[0].ptx_line, accesses[0].op)
    return (own, other) if first_is_own else (other, own)


def races_turned(found: FindingRecord) -> bool:
    """Whether (1) of a race is the record's second access: an operation in flight is shown last, as its value may be missed, or as it
    refills what the other one reads. In tensor memory the order of issue is kept."""
    race = found.kind is Kind.DATA_RACE and found.hazard is Hazard.WAR and not in_tensor_memory(found)
    return race and bool(found.operation) and not found.own_operation


def writes_shared(operation: int) -> bool:
    """Whether an operation writes shared memory."""
    return bool(operation & 1)


def _waits_turned(found: FindingRecord, action: AsyncInfo | None, own_action: AsyncInfo | None) -> bool:
    """Whether (1) of a missing wait is the record's second access: the one of the two that is an operation."""
    return found.kind is Kind.MISSING_WAIT and not in_tensor_memory(found) and action is None and own_action is not None


def _actions(found: FindingRecord, module: ModuleSites) -> tuple[AsyncInfo | None, AsyncInfo | None]:
    """The operations behind the other access and behind the own one. Barrier, phase and group belong to the other's, if any."""
    if found.kind is Kind.MISSING_WAIT and is_copy(found):
        return AsyncInfo("cp.async", group=found.completion.group if found.completion else None), None
    numbers = found.operation, found.own_operation
    other, own = (AsyncInfo(_OPERATIONS[Operation(number)]) if number else None for number in numbers)
    return (_signalled(other, found, module), own) if other else (None, own and _signalled(own, found, module))


def _signalled(action: AsyncInfo, found: FindingRecord, module: ModuleSites) -> AsyncInfo:
    """Add the phase or group that signals completion, if the device recorded it."""
    done = found.completion
    if done is None:
        return action
    if done.barrier is not None and (barrier := barrier_state(found, module)):
        return replace(action, barrier=barrier["offset"], phase=done.barrier.phase, barrier_name=barrier.get("name", ""))
    grouped = action.kind in ("bulk store", "wgmma") and (found.kind is Kind.LIFETIME or found.operation)
    return replace(action, group=done.group) if grouped else action


def _access(found: FindingRecord, number_of_site: int, thread: int, module: ModuleSites, action: AsyncInfo | None) -> Access:
    site = module.site(number_of_site)
    number, touched = in_cta(found, thread), range_of(found)
    if action is None and site is not None:
        action = action_of(site)
    tensor, (block, rank) = in_tensor_memory(found), place_of(found, thread)
    place = Access(
        role="",
        op="",
        name=cells_of(found, module) if tensor else _name(found, module, touched) if touched else "",
        block=block,
        rank=rank,
        cluster_rank=rank_of(found, thread),
        thread=unflatten(number, found.geometry.ntid),
        warp=number // 32,
        lane=number % 32,
        bytes=touched,
        asynchronous=action,
        proxy="async" if action is not None and action.kind in _ASYNC_PROXY else "generic",
        space="global" if is_global(found) else TENSOR_SPACE if tensor else "shared",
    )
    return place if site is None else of_surface(replace(place, role=role_of_site(site, action), op=site.opcode, **located(site)), site)


def of_surface(access: Access, site: Site) -> Access:
    """An access to a surface as one of its own memory, a fetch as one by its own proxy; others as they are."""
    if site.family == TEXTURE:
        return replace(access, proxy=TEXTURE, role="texture fetch")
    if site.family != SURFACE or access.bytes is None:
        return access
    geometry = next(word for word in site.opcode.split(".") if word in surfaces.GEOMETRIES)
    return replace(access, space=SURFACE, proxy=SURFACE, name=surfaces.named(access.bytes[0], geometry))


def _name(found: FindingRecord, module: ModuleSites, touched: tuple[int, int]) -> str:
    if is_global(found):
        return module.variable_name(*touched) or module.address_name(entry_of(found, module), *touched)
    return "" if found.kind is Kind.OUT_OF_BOUNDS else layout_of(found, module).name(*touched)


def action_of(site: Site) -> AsyncInfo | None:
    """The asynchronous operation that an instruction starts, if it is one."""
    if site.opcode.startswith("st.bulk"):  # a weak store of the thread
        return None
    if site.opcode.startswith(("st.async", "red.async")):
        return AsyncInfo("st.async")
    word = _OPERATION_OF_SITE.get((site.family, site.writes or site.row.is_copy))
    return AsyncInfo(word) if word else None


def role_of_site(site: Site, action: AsyncInfo | None) -> str:
    """The deed of an instruction, in words."""
    if role := role_of(site.opcode):
        return role
    if action is not None:
        return _ROLE_OF_OPERATION.get(action.kind, action.kind)
    if site.row.exchanges or (site.access == "none" and site.family in _WARP_FAMILIES):
        return TOGETHER
    named = site.row.is_mbarrier and _BARRIER_ROLES.get(".".join(site.opcode.split(".")[: 3 if site.opcode.startswith("cp") else 2]))
    return named or _ROLES[site.access]


def buffer_of(found: FindingRecord, low: int, high: int, module: ModuleSites) -> Buffer:
    """The bytes in conflict. In a cluster those of one CTA: the first, if several are equal."""
    layout, cta_bytes = layout_of(found, module), found.geometry.cta_bytes
    if not cta_bytes:
        begin = inside(found, low)
        return Buffer(layout.region(begin, begin + high - low) or "shared memory", "shared", begin, high - low)
    owner, last = low // cta_bytes, (high - 1) // cta_bytes
    if owner != last:
        low, high = found.offset, found.offset + found.bytes
        owner = low // cta_bytes
    begin = inside(found, low)
    name = layout.region(begin, begin + high - low) or "shared memory"
    return Buffer(f"{name} of the CTA of rank {owner}", "shared", begin, high - low)
