"""The results of a launch besides its memory: faults, blocked warps, statistics, and an instruction that the machine does not know.

`Machine.launch` never raises a fault: a fault ends the launch, as an illegal address or a `trap` does on a GPU, and is
recorded. It does raise `UnsupportedInstruction`, because the state after an unknown instruction would be a guess.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Final

from consan._errors import NotSupported
from consan.dataclass import dataclass

Dim3 = tuple[int, int, int]


class UnsupportedInstruction(NotSupported):
    """The virtual machine does not execute this instruction; names the opcode and the line."""

    def __init__(self, opcode: str, line: int, detail: str = "") -> None:
        super().__init__(f"the PTX virtual machine does not execute '{opcode}' (PTX line {line}){': ' + detail if detail else ''}")
        self.opcode = opcode
        self.line = line
        self.detail = detail


@dataclass(frozen=True)
class StepSite:
    """The instruction that a step was decoded from."""

    opcode: str
    line: int
    function: str


@dataclass(frozen=True)
class Fault:
    """Why a launch ended early, with the first thread that caused it."""

    # "out-of-bounds" | "misaligned" | "divergent" (address: mask of the lanes that came; message: warp)
    # | "trap" | "assert" | "unknown-opcode" | "illegal" (a tcgen05 instruction)
    # | "remote-wait" | "remote-init" (a wait, init or inval of another CTA's mbarrier)
    kind: str
    opcode: str
    ptx_line: int
    ctaid: Dim3
    tid: Dim3
    address: int = 0
    nbytes: int = 0
    space: str = ""
    access: str = ""
    message: str = ""
    shared_bytes: int = 0  # of the CTA
    freed: bool = False  # the address is one of memory that was freed


@dataclass(frozen=True)
class BarrierState:
    """An mbarrier object as it was: its shared address in its CTA, phases completed since init, and counts."""

    address: int
    phase: int
    pending: int
    expected: int
    tx: int


GRID_BARRIER: Final = "grid barrier"  # the memory of the barrier of a cooperative launch


@dataclass(frozen=True)
class Polled:
    """Memory that a loop reads and that never changes: `inside` bytes into `name`, or at `address` (of shared memory: an offset)."""

    space: str
    address: int
    nbytes: int
    value: int
    name: str = ""
    inside: int = 0
    lock: bool = False  # by an exchange or a compare-and-swap
    others: int = 0  # addresses that other lanes of the warp read by the same instruction

    @property
    def is_grid_barrier(self) -> bool:
        """Whether threads wait there for those of all CTAs."""
        return self.name == GRID_BARRIER


@dataclass(frozen=True)
class Blocked:
    """Lanes of one warp that wait (deadlock) or were still running (time-out), and where."""

    ctaid: Dim3
    warp: int
    lanes: int  # mask
    # "barrier" | "warp-barrier" | "warp-collective" | "cluster-barrier" | "mbarrier" | "columns" | "pair"
    # | "running" | "spin" (polls) | "loop"
    why: str
    barrier: int | None
    opcode: str
    ptx_line: int
    arrived: int | None = None  # threads, at a barrier of the CTA
    expected: int | None = None
    mbarrier: BarrierState | None = None
    callers: tuple[int, ...] = ()  # lines of the calls that led here, the innermost first
    cluster_rank: int | None = None  # of the CTA, in a cluster of several
    polled: tuple[Polled, ...] = ()
    open: bool = False  # whether its loop reads global memory, which the host or threads outside the wave could still write


def united(blocked: list[Blocked]) -> list[Blocked]:
    """Lanes of a warp that wait for the same at the same place are named once, though a schedule has split them."""
    found: dict[Blocked, int] = {}
    for each in blocked:
        who = replace(each, lanes=0)
        found[who] = found.get(who, 0) | each.lanes
    return [replace(who, lanes=lanes) for who, lanes in found.items()]


@dataclass
class LaunchStats:
    """Counts of one `Machine.launch`."""

    instructions: int = 0
    seconds: float = 0.0
    timed_out: bool = False
    idle: float = 0.0  # seconds without any change of memory, after which the launch was given up
    deadlocked: bool = False
    unstarted: int = 0  # CTAs that had not started when the launch ended early
    left_out: int = 0  # CTAs that were not to start
    cancelled: int = 0  # CTAs that never ran: others took over their work (cluster launch control)
    faults: list[Fault] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    undecided: list[Blocked] = field(default_factory=list)  # lanes that a write by the host or by a thread outside the wave could release

    @property
    def completed(self) -> bool:
        """Whether every thread ran to its end."""
        return not self.ending

    @property
    def ending(self) -> str:
        """Why the launch ended early, in a word; "" if it did not."""
        stopped = self.timed_out or self.idle or (self.undecided and not self.deadlocked)
        return "timeout" if stopped else "deadlock" if self.deadlocked else "fault" if self.faults else ""


class LaneError(Exception):
    """Raised by a step; the engine turns it into a `Fault` and ends the launch."""

    def __init__(
        self,
        kind: str,
        lane: int,
        site: StepSite,
        *,
        address: int = 0,
        nbytes: int = 0,
        space: str = "",
        access: str = "",
        message: str = "",
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.lane = lane
        self.site = site
        self.address = address
        self.nbytes = nbytes
        self.space = space
        self.access = access
        self.message = message
