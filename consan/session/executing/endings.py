"""How a launch ended: faults and deadlocks of the virtual machine become findings, other early ends become reasons.

A launch that was cut short (time limit, Ctrl-C) proves nothing. It makes the run incomplete, and the reason says where its threads were.

Places are those of the original PTX and source: the machine ran the instrumented text, so lines are mapped back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan._errors import NotSupported
from consan.backends.base import DeviceLost
from consan.instrument.rewriting.ranked import rank_grid_of, ranks_of
from consan.reports.counts import plural
from consan.reports.model import Access, Finding
from consan.reports.positions import unfinished
from consan.reports.records.bounds import extent_named, outside
from consan.reports.records.divergence import TOGETHER, executed_in_part
from consan.reports.source.places import located as place_fields, shown_at
from consan.reports.waiting.deadlocks import OF_GRID, Phase, Poll
from consan.reports.waiting.waiters import Waiter, deadlock_of
from consan.reports.words.between_ranks import of_ranks
from consan.reports.words.wording import GENERAL, describe

if TYPE_CHECKING:
    from consan.backends.cpu import BarrierState, Blocked, Fault, LaunchStats
    from consan.backends.cpu.state.faults import Polled
    from consan.instrument.sites import Place
    from consan.reports.source.variables import Layout
    from consan.session.modules.prepared import Prepared

_MISALIGNED: Final = "misaligned"
_ADDRESS_FAULTS: Final = ("out-of-bounds", _MISALIGNED)
_DIVERGENT: Final = "divergent"
_ILLEGAL: Final = "illegal"  # a tcgen05 instruction
_FAULT: Final = "fault"
_MISUSE: Final = "tcgen05-misuse"
_PENDING_VALUES: Final = 1 << 20
_MBARRIER_BYTES: Final = 8
STOOD: Final = "blocked"  # attribute of the KeyboardInterrupt that ends a launch: where its threads were
_GRID_GROUP: Final = ("cooperative_groups", "grid_group")  # in the names of its functions
_NOT_COOPERATIVE: Final = (
    "the barrier of a grid needs a cooperative launch (consan.launch(..., cooperative=True); in CuPy"
    " RawKernel(..., enable_cooperative_groups=True); cudaLaunchCooperativeKernel)"
)
_STOPS: Final = {"trap": "trap", "assert": "assertion"}  # faults by which a kernel stops itself, and their situations
_FAULTS_OF_DEVICE: Final = {
    "CUDA_ERROR_ASSERT": GENERAL,
    "CUDA_ERROR_LAUNCH_FAILED": GENERAL,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": GENERAL,
    "CUDA_ERROR_INVALID_PC": GENERAL,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": GENERAL,
    "CUDA_ERROR_ILLEGAL_ADDRESS": "illegal-access",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "illegal-access",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "illegal-access",
}
_ENDINGS: Final = {
    "trap": "executed trap",
    "assert": "failed an assertion",
    "unknown-opcode": "met an unknown instruction",
}


def settled(stats: LaunchStats, *, alone: bool) -> LaunchStats:
    """Keep only proofs of a hang that no other writer can disprove.

    A CTA that polls global memory may continue if there is another writer: a CTA that has not started, or is not to start, or, unless the
    launch runs `alone`, the host or another launch.
    """
    if not stats.deadlocked or not (stats.unstarted or stats.left_out or not alone):
        return stats
    free = {_cluster(b) for b in stats.blocked if b.open}
    undecided = [b for b in stats.blocked if _cluster(b) in free]
    blocked = [b for b in stats.blocked if _cluster(b) not in free]
    return replace(stats, deadlocked=bool(blocked), blocked=blocked, undecided=undecided)


def _cluster(blocked: Blocked) -> Any:
    """A key for the CTAs that share memory. Clusters of several CTAs have one key."""
    return blocked.ctaid if blocked.cluster_rank is None else None


def endings_of(stats: LaunchStats, prepared: Prepared, entry: str, timeout: float | None) -> list[str]:
    """Why a launch ended early without a finding: the program stopped itself (trap, assert), or a limit was reached."""
    ends = [_ending(fault, prepared, entry) for fault in stats.faults if fault.kind not in (*_ADDRESS_FAULTS, _DIVERGENT, _ILLEGAL)]
    if stats.undecided:
        ends.append(unfinished(entry, _outsiders(stats, prepared, entry), positions(stats.undecided, prepared, entry)))
    elif stats.timed_out or stats.idle:
        why = idle_for(stats.idle) if stats.idle else over_time(timeout)
        ends.append(unfinished(entry, why if stats.blocked else _between(why, stats.unstarted), positions(stats.blocked, prepared, entry)))
    if stats.left_out:
        ends.append(unfinished(entry, f"{plural(stats.left_out, 'CTA')} were not to start", []))
    return ends


def _between(why: str, unstarted: int) -> str:
    """The reason for a launch that ended before some CTAs had started."""
    return f"{why}, when {plural(unstarted, 'CTA')} had not started" if unstarted else why


def _outsiders(stats: LaunchStats, prepared: Prepared, entry: str) -> str:
    """Why a launch was stopped whose threads wait for writes from outside the launch."""
    first = [poll.text for blocked in stats.undecided for poll in _polls(blocked, prepared, entry)[:1]]
    polls = " and ".join(dict.fromkeys(first)) or "global memory"
    loops = f"its threads poll {polls} in loops that write nothing"
    if stats.unstarted:
        ctas = f"{plural(stats.unstarted, 'CTA')} had not started"
        return f"{loops}, and {ctas}: only a cooperative launch can rely on all CTAs of a grid running at the same time"
    return f"{loops}: only the host or another launch could write it, and the virtual machine runs launches one after the other"


def idle_for(seconds: float) -> str:
    """The reason for a launch that the default limit ended."""
    return f"stopped after its threads had polled for {seconds:g} s while no memory changed (--timeout SECONDS sets another limit)"


def over_time(timeout: float | None) -> str:
    """The reason for a launch that the time limit ended."""
    return "its time was over" if timeout is None else f"stopped after {timeout:g} s (--timeout SECONDS)"


def interrupted(error: BaseException, prepared: Prepared, entry: str) -> str:
    """The reason for Ctrl-C or SIGTERM. The virtual machine has attached where the threads were."""
    return unfinished(entry, "interrupted", positions(getattr(error, STOOD, ()), prepared, entry))


def positions(blocked: Iterable[Blocked], prepared: Prepared, entry: str) -> list[dict[str, Any]]:
    """The places of threads, in the form of a report's waiters."""
    return [_waiter(each, prepared, entry).as_dict() for each in blocked]


def located(error: NotSupported, prepared: Prepared) -> NotSupported:
    """The virtual machine's refusal of an instruction, with its line in the user's PTX."""
    place = prepared.instrumented.original(getattr(error, "line", 0))
    if place is None:
        return error
    shown = shown_at(place)
    where = f"{shown['file']}:{shown['line']}, " if shown["file"] else ""
    detail = getattr(error, "detail", "")
    what = f"the PTX virtual machine does not execute '{place.ptx}' ({where}line {place.ptx_line} of the PTX)"
    return NotSupported(f"{what}: {detail}" if detail else what)


def _ending(fault: Fault, prepared: Prepared, entry: str) -> str:
    place = prepared.instrumented.original(fault.ptx_line, fault.opcode)
    where = _at(place) if place else ""
    detail = _detail(fault, place)
    what = _ENDINGS.get(fault.kind, f"ended with {fault.kind}")
    return f"{entry} {what}{where}, CTA {fault.ctaid}, thread {fault.tid}{detail}: the rest of the launch did not run"


def _detail(fault: Fault, place: Place | None) -> str:
    message = _NOT_COOPERATIVE if place and _of_grid_barrier(place) else fault.message
    return f": {message}" if message not in ("", fault.kind) else ""


def _of_grid_barrier(place: Place) -> bool:
    """Whether an instruction is of the barrier of a cooperative grid, which traps in other launches."""
    return any(all(word in (call.function or "") for word in _GRID_GROUP) for call in place.inlined)


def _at(place: Place) -> str:
    shown = shown_at(place)
    return f" at {shown['file']}:{shown['line']}" if shown["file"] else f" (PTX line {shown['ptx_line']})"


def findings_of(stats: LaunchStats, prepared: Prepared, entry: str) -> list[Finding]:
    """Findings about the end of one launch on the virtual machine."""
    found = [_fault(fault, prepared, entry) for fault in stats.faults if fault.kind in _ADDRESS_FAULTS]
    found += [_divergence(fault, prepared, entry) for fault in stats.faults if fault.kind == _DIVERGENT]
    found += [_stopped(fault, prepared, entry) for fault in stats.faults if fault.kind in _STOPS]
    found += [_illegal(fault, prepared, entry) for fault in stats.faults if fault.kind == _ILLEGAL]
    if stats.deadlocked:
        found.append(_deadlock(stats.blocked, prepared, entry))
    ranks, rank_grid = ranks_of(prepared.plain), rank_grid_of(prepared.plain)
    return [of_ranks(each, ranks, rank_grid) for each in found] if rank_grid else found


def _with_message(finding: Finding, message: str) -> Finding:
    return replace(finding, message=message)


def _fault(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    place = prepared.instrumented.original(fault.ptx_line, fault.opcode)
    touched, space = _touched(fault), fault.space or "global"
    access = Access(
        role=fault.access or "access",
        op=fault.opcode,
        block=fault.ctaid,
        thread=fault.tid,
        bytes=touched,
        space=space,
        name=prepared.address_name(*touched) if touched and space == "global" else "",
        **_where(place),
    )
    facts: dict[str, Any] = dict(_outside(access))
    if space == "shared":
        facts |= {"shared_bytes": fault.shared_bytes, "dynamic": prepared.layout(entry).dynamic is not None}
    misaligned = fault.kind == _MISALIGNED
    facts |= {"alignment": fault.message or _alignment(fault)} if misaligned else {}
    situation = _MISALIGNED if misaligned else "freed" if fault.freed else None
    finding = describe(Finding(kind="out-of-bounds", kernel=entry, accesses=(access,)), situation, **facts)
    detail = f" ({fault.message})" if fault.message and not misaligned else ""
    return _with_message(finding, f"{finding.message}{detail}; the launch ended there")


def _alignment(fault: Fault) -> str:
    """By how much the address misses a multiple of the access's width."""
    beyond = fault.address % fault.nbytes if fault.nbytes else 0
    what = f"{plural(beyond, 'byte')} beyond a multiple" if beyond else "no multiple"
    return f"the address is {what} of {fault.nbytes}"


def _illegal(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    """A tcgen05 instruction that the ISA forbids (R-T15, R-A*). The machine names the field, and what is allowed."""
    place = prepared.instrumented.original(fault.ptx_line, fault.opcode)
    role = ".".join(fault.opcode.split(".")[:2])
    access = Access(role=role, op=fault.opcode, block=fault.ctaid, thread=fault.tid, **_where(place))
    finding = describe(Finding(kind=_MISUSE, kernel=entry, accesses=(access,)), "illegal")
    return _with_message(finding, f"{finding.message}: {fault.message}; the launch ended there")


def _stopped(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    """A trap or an assertion that failed. The machine gives the condition."""
    place = prepared.instrumented.original(fault.ptx_line, fault.opcode)
    situation = _STOPS[fault.kind]
    access = Access(role=situation, op=fault.opcode, block=fault.ctaid, thread=fault.tid, **_where(place))
    finding = describe(Finding(kind=_FAULT, kernel=entry, accesses=(access,)), situation)
    return _with_message(finding, f"{finding.message}{_detail(fault, place)}; the launch ended there")


def fault_of_device(entry: str, error: DeviceLost) -> list[Finding]:
    """The finding for an error that only a kernel causes. The driver gives no place; `entry`: the kernel, or those that it can be."""
    situation = _FAULTS_OF_DEVICE.get(error.name)
    if situation is None:
        return []
    finding = describe(Finding(kind=_FAULT, kernel=entry if entry.isidentifier() else "unknown"), situation)
    return [_with_message(finding, f"{finding.message}: {error.name} ({entry})")]


def _outside(access: Access) -> dict[str, str]:
    """The distance of an access from the buffer that its name contains."""
    touched = access.bytes
    return outside(extent_named(access.name, touched[0]), touched, touched) if touched and access.name else {}


def _touched(fault: Fault) -> tuple[int, int] | None:
    """The bytes accessed. Shared memory counts from the CTA's first byte, as in the kernel."""
    begin = fault.address - (late.machine_memory.RESERVED_SHARED if fault.space == "shared" else 0)
    return (begin, begin + fault.nbytes) if fault.nbytes else None


def _divergence(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    """A matrix instruction that part of a warp has executed. The kernel's own record has the places of the other lanes."""
    place = prepared.instrumented.original(fault.ptx_line, fault.opcode)
    access = Access(
        role=TOGETHER,
        op=fault.opcode,
        block=fault.ctaid,
        thread=fault.tid,
        warp=int(fault.message),
        lane=(fault.address & -fault.address).bit_length() - 1,
        **_where(place),
    )
    return executed_in_part(Finding(kind="barrier-misuse", kernel=entry, accesses=(access,)), fault.address)


def _where(place: Place | None) -> dict[str, Any]:
    return place_fields(place) if place is not None else {}


def _waiter(blocked: Blocked, prepared: Prepared, entry: str) -> Waiter:
    own = prepared.instrumented.original(blocked.ptx_line, blocked.opcode)
    places = (own, *map(prepared.instrumented.original, blocked.callers))
    place = next((place for place in places if place is not None), None)
    return Waiter(
        block=blocked.ctaid,
        warp=blocked.warp,
        lanes=blocked.lanes,
        why=blocked.why,
        place=shown_at(place) if place is not None else {},
        cluster_rank=blocked.cluster_rank,
        barrier=blocked.barrier,
        arrived=blocked.arrived,
        expected=blocked.expected,
        phase=_phase(blocked, blocked.mbarrier, prepared.layout(entry)) if blocked.mbarrier is not None else None,
        polls=tuple(_polls(blocked, prepared, entry)),
        polled=_polled(blocked, prepared, entry) if blocked.polled else "",
    )


def _polled(blocked: Blocked, prepared: Prepared, entry: str) -> str:
    """The memory that a warp's loop polls."""
    more = blocked.polled[0].others
    polls = [poll.text for poll in _polls(blocked, prepared, entry)]
    return " and ".join(polls + ([f"{plural(more, 'more address', 'more addresses')}"] if more else []))


def _polls(blocked: Blocked, prepared: Prepared, entry: str) -> list[Poll]:
    return [poll_of(polled, prepared, entry) for polled in blocked.polled]


def poll_of(polled: Polled, prepared: Prepared, entry: str) -> Poll:
    """Memory that a loop polls, as a report has it."""
    text = OF_GRID if polled.is_grid_barrier else _memory(polled, prepared, entry)
    return Poll(text, polled.lock, _variable(polled, prepared, entry))


def _variable(polled: Polled, prepared: Prepared, entry: str) -> str:
    inside = polled.address, polled.address + polled.nbytes
    return prepared.layout(entry).name(*inside) if polled.space == "shared" else ""


def _memory(polled: Polled, prepared: Prepared, entry: str) -> str:
    """`flags[1] (shared offset 16, value 0)`, `byte 4 of --arg 2 (out) (value 0)`."""
    end = polled.address + polled.nbytes
    inside = f"byte {polled.inside} of " if polled.inside and polled.name else ""
    known = f"{inside}{polled.name}" if polled.name else ""
    if polled.space == "shared":
        name = prepared.layout(entry).name(polled.address, end) or known or "shared memory"
        return f"{name} (shared offset {polled.address}, value {polled.value})"
    name = prepared.address_name(polled.address, end) or known or f"global address {polled.address:#x}"
    return f"{name} (value {polled.value})"


def _phase(blocked: Blocked, state: BarrierState, layout: Layout) -> Phase:
    """An mbarrier, by its CTA and offset, with its phase and what is pending. Its waiters are in the same CTA."""
    offset = state.address - late.machine_memory.RESERVED_SHARED
    name = layout.name(offset, offset + _MBARRIER_BYTES)
    pending = state.pending - _PENDING_VALUES if state.pending >= _PENDING_VALUES // 2 else state.pending  # below 0: too many arrivals
    return Phase(offset, state.phase, pending, state.expected, state.tx, blocked.cluster_rank, name)


def _deadlock(blocked: list[Blocked], prepared: Prepared, entry: str) -> Finding:
    """All waiters, grouped by place, in the order of the PTX."""
    ordered = sorted(blocked, key=lambda b: (b.ptx_line, b.ctaid[::-1], b.warp))
    relations = late.between.TextRelations(lambda: prepared.instrumented.module)
    return deadlock_of(entry, [_waiter(b, prepared, entry) for b in ordered], relations)
