"""What a launch itself says about its end: faults of the virtual machine, deadlocks and time-outs, as findings.

Places are given in the original PTX and source: the machine ran the instrumented text, so lines are mapped back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from consan._errors import NotSupported
from consan.reports.deadlocks import Phase, deadlock
from consan.reports.divergence import TOGETHER, executed_in_part
from consan.reports.kinds import describe
from consan.reports.model import Access, Finding, Frame

if TYPE_CHECKING:
    from consan.backends.cpu import BarrierState, Blocked, Fault, LaunchStats
    from consan.session import Prepared

_ADDRESS_FAULTS: Final = {"out-of-bounds": "", "misaligned": "the address is not a multiple of the access's width"}
_DIVERGENT: Final = "divergent"
_ENDINGS: Final = {"trap": "executed trap", "assert": "failed an assertion", "unknown-opcode": "met an unknown instruction"}


def endings_of(stats: LaunchStats, prepared: Prepared, entry: str) -> list[str]:
    """Why a launch ended early without a defect that consan knows: the program stopped itself (trap, assert)."""
    return [_ending(fault, prepared, entry) for fault in stats.faults if fault.kind not in (*_ADDRESS_FAULTS, _DIVERGENT)]


def located(error: NotSupported, prepared: Prepared) -> NotSupported:
    """The virtual machine's refusal of an instruction, with the line of the user's PTX instead of the rewritten one."""
    place = prepared.instrumented.original(getattr(error, "line", 0))
    if place is None:
        return error
    where = f"{place.file}:{place.line}, " if place.file else ""
    detail = getattr(error, "detail", "")
    what = f"the PTX virtual machine does not execute '{place.ptx}' ({where}line {place.ptx_line} of the PTX)"
    return NotSupported(f"{what}: {detail}" if detail else what)


def _ending(fault: Fault, prepared: Prepared, entry: str) -> str:
    place = prepared.instrumented.original(fault.ptx_line)
    where = f" at {place.file}:{place.line}" if place and place.file else f" (PTX line {place.ptx_line})" if place else ""
    detail = f": {fault.message}" if fault.message else ""
    what = _ENDINGS.get(fault.kind, f"ended with {fault.kind}")
    return f"{entry} {what}{where}, CTA {fault.ctaid}, thread {fault.tid}{detail}: the rest of the launch did not run"


def findings_of(stats: LaunchStats, prepared: Prepared, entry: str, timeout: float | None) -> list[Finding]:
    """Findings about the end of one launch on the virtual machine."""
    found = [_fault(fault, prepared, entry) for fault in stats.faults if fault.kind in _ADDRESS_FAULTS]
    found += [_divergence(fault, prepared, entry) for fault in stats.faults if fault.kind == _DIVERGENT]
    if stats.deadlocked:
        found.append(_deadlock(stats.blocked, prepared, entry))
    if stats.timed_out and timeout is not None:
        found.append(timeout_finding(entry, timeout, True, [_waiter(b, prepared) for b in stats.blocked]))
    return found


def timeout_finding(entry: str, timeout: float, ended: bool, waiters: list[dict[str, Any]] | None = None) -> Finding:
    """A launch that the watchdog stopped: no proof of a deadlock, and the message says so."""
    finding = describe(Finding(kind="deadlock", kernel=entry, waiters=tuple(waiters or ())), "timeout")
    how = "it was stopped" if ended else "it did not stop when told to"
    return _with_message(finding, f"{finding.message} (watchdog: {timeout:g} s; {how})")


def _with_message(finding: Finding, message: str) -> Finding:
    return replace(finding, message=message)


def _fault(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    place = prepared.instrumented.original(fault.ptx_line)
    access = Access(
        role=fault.access or "access",
        op=fault.opcode,
        block=fault.ctaid,
        thread=fault.tid,
        bytes=(fault.address, fault.address + fault.nbytes) if fault.nbytes else None,
        space=fault.space or "global",
        **_where(place),
    )
    finding = describe(Finding(kind="out-of-bounds", kernel=entry, accesses=(access,)))
    detail = fault.message or _ADDRESS_FAULTS[fault.kind]
    return _with_message(finding, f"{finding.message} ({detail})") if detail else finding


def _divergence(fault: Fault, prepared: Prepared, entry: str) -> Finding:
    """A matrix instruction that part of a warp has executed; where the others are is for the kernel's own record to say."""
    place = prepared.instrumented.original(fault.ptx_line)
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


def _where(place: Any) -> dict[str, Any]:
    if place is None:
        return {}
    return {
        "file": place.file or "",
        "line": place.line or 0,
        "column": place.column or 0,
        "ptx_line": place.ptx_line,
        "ptx": place.ptx,
        "inlined": tuple(Frame(f.function or "", f.file, f.line, f.column) for f in place.inlined),
    }


def _waiter(blocked: Blocked, prepared: Prepared) -> dict[str, Any]:
    places = (prepared.instrumented.original(line) for line in (blocked.ptx_line, *blocked.callers))
    place = next((place for place in places if place is not None), None)
    waiter: dict[str, Any] = {"block": list(blocked.ctaid), "warp": blocked.warp, "lanes": blocked.lanes, "why": blocked.why}
    if blocked.cluster_rank is not None:
        waiter["cluster_rank"] = blocked.cluster_rank
    if blocked.barrier is not None:
        waiter["barrier"] = blocked.barrier
    if blocked.mbarrier is not None:
        waiter |= _phase(blocked, blocked.mbarrier).as_dict("mbarrier")
    waiter |= {k: v for k, v in _where(place).items() if k in ("file", "line", "column", "ptx_line", "ptx")}
    return waiter


def _phase(blocked: Blocked, state: BarrierState) -> Phase:
    """An mbarrier by its CTA and its offset there, with its phase and what it still waits for; who waits is of its CTA."""
    from consan.backends.cpu.memory import RESERVED_SHARED

    return Phase(state.address - RESERVED_SHARED, state.phase, state.pending, state.expected, state.tx, blocked.cluster_rank)


def _deadlock(blocked: list[Blocked], prepared: Prepared, entry: str) -> Finding:
    """All that wait, those of one place together, in the order of the PTX."""
    ordered = sorted(blocked, key=lambda b: (b.ptx_line, b.ctaid[::-1], b.warp))
    phases = [_phase(b, b.mbarrier) for b in ordered if b.mbarrier is not None]
    numbers = [b.barrier for b in ordered if b.barrier is not None]
    ranks = [b.cluster_rank for b in ordered if b.why == "cluster-barrier" and b.cluster_rank is not None]
    return deadlock(entry, [_waiter(b, prepared) for b in ordered], phases, numbers, ranks)
