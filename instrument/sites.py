"""The site table: the instruction behind each site number. The device writes numbers only; this table gives them their meaning."""

from __future__ import annotations

from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.isa import Row, row_of
from consan.instrument.isa.traits import AccessTraits
from consan.instrument.ptx import Instruction


@dataclass(frozen=True)
class InlinedCall:
    """One step of an inlining chain: the position at which the inlined code of `function` (a symbol) was called."""

    function: str | None
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Place:
    """An instruction of the original PTX and the source line it was compiled from."""

    ptx_line: int
    ptx: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    inlined: tuple[InlinedCall, ...] = ()

    @property
    def opcode(self) -> str:
        """The opcode, without the guard."""
        return next((word for word in self.ptx.rstrip(";").split() if not word.startswith("@")), "")


@dataclass(frozen=True)
class Site(AccessTraits):
    """One instrumented instruction.

    `number` is 1-based within the module (0 on the device means unknown). `bytes` is what one thread accesses. A partly `unused`
    instruction has several sites.
    """

    number: int
    function: str
    opcode: str
    family: str
    access: str
    space: str
    bytes: int
    ptx_line: int
    ptx: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    unused: bool = False  # the loaded value goes to registers that nothing reads
    inlined: tuple[InlinedCall, ...] = ()

    @property
    def row(self) -> Row:
        """The row of its opcode."""
        return row_of(self)

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode split at its dots."""
        return tuple(self.opcode.split("."))


@dataclass(frozen=True)
class UnmodelledInstruction:
    """A memory or synchronisation instruction that consan does not check, or words for another gap. The verdict becomes `incomplete`."""

    opcode: str
    ptx_line: int
    function: str

    @property
    def is_instruction(self) -> bool:
        """Whether it is an opcode, not words."""
        return " " not in self.opcode


@dataclass(frozen=True)
class SharedVariable:
    """A variable in shared memory as PTX declares it. 0 bytes: the size is given at launch. `element` is 1 for plain bytes."""

    symbol: str
    bytes: int
    align: int
    element: int


@dataclass
class GlobalWrites:
    """Counts of instructions that may write global memory, or a surface, which is checked with it.

    `atomics`: they also read it: atomics and reductions. `generic`: stores and atomics whose address may lie elsewhere.
    """

    stores: int = 0
    atomics: int = 0
    generic: int = 0

    def count(self, row: Row, instruction: Instruction) -> None:
        """Count an instruction."""
        written = [access for access in row.accesses(instruction) if access.writes]
        outside = [access for access in written if access.in_global or access.is_of_elements]
        self.atomics += any(access.updates for access in outside)
        self.stores += any(not access.updates for access in outside)
        self.generic += any(access.is_generic for access in written)


@dataclass
class FunctionStats:
    """Counts of one function of the module, for the report and for the test that nothing was skipped."""

    name: str
    kind: str
    memory_sites: int = 0
    sync_sites: int = 0
    private: int = 0
    writes: GlobalWrites = field(default_factory=GlobalWrites)
    open_points: int = 0  # warp-synchronous instructions that a lane may bypass unnoticed (functions/points.py)
    grid_controls: int = 0  # griddepcontrol: the kernel may run beside the one that is launched before or after it
    unmodelled: list[UnmodelledInstruction] = field(default_factory=list)
    annotations: tuple[str, ...] = ()  # what a report lists of them (functions/annotated.py)
    calls: set[str] = field(default_factory=set)
    fence_scopes: set[str] = field(default_factory=set)  # of its fences
    families: set[str] = field(default_factory=set)  # families of the checked instructions, and of those that reach other CTAs
    shared: tuple[SharedVariable, ...] = ()  # declared in the function, or in the module and named in the function
    placed: dict[str, int] = field(default_factory=dict)  # words of the module for addresses of shared variables (passes/symbols.py)


@dataclass(frozen=True)
class StaticFinding:
    """A hazard in the text, mostly on registers (hazards/registers.py). (1) came first.

    For `no-fence` (2) is the matrix instruction, else (1) is. `leave` is the largest N of a wait_group that would cover (1). `kernels` are
    those that can reach the function.
    """

    reason: str  # the situation: "touched-before-wait", "not-committed", "no-fence", "written-after-fence"; "result-ignored" (ignored.py)
    hazard: str  # "RAW", "WAR" or "WAW"; empty if none of these
    first: Place
    second: Place  # `first` again if one instruction is at fault
    first_role: str
    second_role: str
    registers: tuple[str, ...]
    leave: int
    function: str
    kernels: tuple[str, ...]
    kind: str = "register-hazard"
    serialised: str = ""  # the ptxas warning that says that this serialises the pipeline
    third: Place | None = None  # what stands nearby and does not serve (hazards/nearby.py)
    third_role: str = ""  # "late", "short" or "fence"
