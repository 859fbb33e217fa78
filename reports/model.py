"""The results of a run: frozen dataclasses that mirror `consan.report/1` (reports/schema).

`reports/verdict` decides their content: which findings are equal, which one speaks, verdict, exit status. Renderers decide nothing.

Conventions of the fields, for programs that read the JSON:

- `block` and `thread` are (x, y, z). `warp` is the warp's index in its CTA, `lane` the lane in its warp.
- `Access.bytes` is the byte range [begin, end) in its state space; offsets in shared memory count from the CTA's first
  byte. `Buffer.offset` and `Buffer.bytes` are the place and size of the union of the bytes in conflict.
- `Access.file`, `line` and `column` are the user's line (`places.located`); `inlined` is the chain of calls, innermost first.
  `innermost` is the place of the instruction itself, if that is another line, such as one in a library's header.
- An unknown value is None (or "" for text), never a made-up 0.
- `Report.exit` is the status of the program itself (0 for `check`). `Report.status` is the status of the command, which
  the command sets (`exit_status`).

Not here: which edge is missing and how to say so (`kinds`), and decoding of device records (`decode`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from consan.dataclass import dataclass
from consan.reports.racing_value import Outcomes, RacingValue

SCHEMA: Final = "consan.report/1"

CLEAN: Final = "clean"
VIOLATIONS: Final = "violations"
INCOMPLETE: Final = "incomplete"
VERDICTS: Final = (CLEAN, VIOLATIONS, INCOMPLETE)

SEVERITIES: Final = ("error", "warning", "note")  # worst first, as findings are shown

NOTHING_RAN: Final = "no instrumented kernel was launched"

EXIT_VIOLATIONS: Final = 66
EXIT_INCOMPLETE: Final = 67

CULPRIT: Final = "culprit"  # role of an instruction between the two accesses that does not order them

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Frame:
    """One step of an inlining chain: `function` was inlined at file:line:column. In `Access.innermost`, the place is in `function`."""

    function: str
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class AsyncInfo:
    """The asynchronous operation behind an access: its kind (`cp.async`, ...) and how its completion is signalled."""

    kind: str
    group: int | None = None
    barrier: int | None = None
    phase: int | None = None
    barrier_name: str = ""


@dataclass(frozen=True)
class Access:
    """One side of a finding."""

    role: str  # "read", "write", "atomic", ... : what this access did, in words
    op: str  # the full opcode, e.g. "st.shared.f32"
    proxy: str = "generic"  # "generic", "async", "tensormap", "surface" or "texture": the path to memory
    file: str = ""  # of the user's line: the outermost call that is his, empty without line information
    line: int = 0  # from 1; 0: unknown
    column: int = 0  # from 1; 0: unknown
    ptx_line: int = 0  # of the kernel's PTX, from 1
    ptx: str = ""  # the instruction
    block: Dim3 | None = None  # the CTA, x first
    cluster_rank: int | None = None  # of the CTA in its cluster, if there are clusters
    thread: Dim3 | None = None  # in its CTA, x first
    warp: int | None = None  # in its CTA
    lane: int | None = None  # in its warp
    bytes: tuple[int, int] | None = None  # the first byte, and how many: an offset in shared memory, an address in global memory
    asynchronous: AsyncInfo | None = None  # of an asynchronous operation: how it completes
    inlined: tuple[Frame, ...] = ()  # the calls through which the instruction was inlined, outwards
    space: str = "shared"  # "shared", "global", "tensor", ...
    innermost: Frame | None = None  # the instruction's own place, where that is another than `file` and `line`
    name: str = ""  # the bytes as the source names them: `tile[1][3]`
    rank: int | None = None  # of the GPU, in a launch for several ranks: the CTA is one of its grid

    @property
    def in_shared(self) -> bool:
        """Whether the bytes are in shared memory."""
        return self.space == "shared"

    @property
    def in_global(self) -> bool:
        """Whether the bytes are in global memory."""
        return self.space == "global"

    @property
    def statement(self) -> tuple[str, int, int, str]:
        """The action and its innermost place. Two calls of one library function on a line share a `site` but not a statement."""
        place = self.innermost or self
        return (place.file, place.line, place.column, self.role) if self.line else self.site

    @property
    def site(self) -> tuple[str, int, int, str]:
        """The key for merging: the place in the source, and the action there.

        An unrolled loop has many instructions at one place: one defect. A statement like `a[i] += x` has a read
        and a write there: two sites. Without a source line the PTX line is used.
        """
        place = (self.file, self.line, self.column) if self.line else ("", self.ptx_line, 0)
        return (*place, self.role)


@dataclass(frozen=True)
class Buffer:
    """The memory in conflict: a named region, its state space, and the bytes within the region."""

    name: str
    space: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Suppressed:
    """Why a finding does not count: the reason given, and by whom (`by`: a file and line, or a test's marker)."""

    reason: str
    by: str
    in_source: bool = False


@dataclass(frozen=True)
class RanTest:
    """One test of a pytest run: its outcome, and the verdict on its launches."""

    id: str
    outcome: str
    verdict: str
    launches: int = 0
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True)
class FixStep:
    """One step of a verified fix: an instruction, and where. `at`: what stands there, such as "the read"; empty: the whole line.

    `own_line`: in the kernel itself, of what is moved, altered or left out; 0 if that is in another file. `at_condition`: what stands there
    belongs to a condition, and not to the statement under it.
    """

    action: str  # "add", "move", "alter", "leave-out"
    instruction: str
    where: str  # "before", "after" or "at"
    at: str
    file: str = ""
    line: int = 0
    ptx_line: int = 0
    spelling: str = ""  # of the instruction, in the user's framework
    own_line: int = 0
    at_condition: bool = False


@dataclass(frozen=True)
class VerifiedFix:
    """A repair with which the replay of the recorded launch has no such finding, and no new one.

    `left`: findings of the launch, before they are merged, that the repair does not remove. `edits`: the repair in the kernel's PTX: ranges
    of its text, and what comes in their place; empty if it cannot be written so. `rerun`: runs with these edits have confirmed it.
    `instead_of`: the words of the catalogue, where these name another repair; `Finding.fix` then names this one. `schedules`: runs of the
    changed kernel that left equal results; 1: no schedule can change them; 0: results were not compared, or differ between these runs.
    """

    steps: tuple[FixStep, ...]
    left: int = 0
    edits: tuple[tuple[int, int, str], ...] = ()
    rerun: bool = False
    instead_of: str = ""
    schedules: int = 0
    unoptimized: str = ""  # the kind of a race that is left where the changed source is compiled without optimisation


@dataclass(frozen=True)
class Finding:
    """One defect: `count` dynamic occurrences in `ctas` CTAs, of one kind at one pair of sites.

    `ctas` is 0 for a hazard found in the kernel's text; `count` is then the number of launches.
    """

    kind: str  # as `consan explain` lists them
    kernel: str  # its name in the PTX
    severity: str = "error"  # "error", "warning" or "note"
    hazard: str | None = None  # RAW, WAR, WAW; None if the kind has no hazard
    message: str = ""  # what can go wrong, a sentence
    missing: str = ""  # what would order the accesses
    fix: str = ""  # the smallest change that adds it
    count: int = 1  # how often
    ctas: int = 1  # in how many CTAs; of clusters, where there are clusters
    buffer: Buffer | None = None  # where the bytes are
    accesses: tuple[Access, ...] = ()  # the first, the second, and the instruction at fault if there is one
    barrier: dict[str, Any] | None = None  # of a deadlock or a misused barrier
    waiters: tuple[dict[str, Any], ...] = ()  # of a deadlock: who waits, and where
    policy: str = "default"  # "isa": reported only under --policy isa
    suppressed: Suppressed | None = None  # by what, if it does not count
    tests: tuple[str, ...] = ()  # the tests of a pytest run that showed it
    situation: str = ""  # the catalogue row of its words, such as "waited-no-barrier"
    cause: str = ""  # the rule about culprits that its words come from, such as "never-freed"
    verified: VerifiedFix | None = None  # a repair that a replay of the recorded launch has confirmed
    seed: int | None = None  # of the schedule that shows it, where that of the run does not
    unoptimized: bool = False  # only the kernel as it is compiled without optimisation shows it
    value: RacingValue | None = None  # what becomes of the value that races; None: not known
    outcomes: Outcomes | None = None  # of runs in which its accesses come in both orders; None: not run

    @property
    def pair(self) -> tuple[Access, ...]:
        """The accesses in conflict, without the culprit."""
        return tuple(access for access in self.accesses if access.role != CULPRIT)

    @property
    def culprit(self) -> Access | None:
        """The first instruction at fault, if one is known."""
        return next((access for access in self.accesses if access.role == CULPRIT), None)


@dataclass(frozen=True)
class Unmodelled:
    """An instruction that accesses memory or synchronises and that this version cannot check."""

    opcode: str
    ptx_line: int
    count: int = 1


@dataclass(frozen=True)
class Schedules:
    """The effects of the schedule on a kernel. `holds`: nothing follows from what threads observe of others; else `why` it may.

    `explored`: other schedules that were run. An observation is an instruction by which a thread sees what others do. Of its
    `possible` outcomes `outcomes` were seen, in all. `ended`: why not all planned schedules have run.
    """

    holds: bool
    why: str = ""
    explored: int = 0
    observations: int = 0
    outcomes: int = 0
    possible: int = 0
    ended: str = ""


@dataclass(frozen=True)
class AllLaunchesProof:
    """No launch of a kernel with blocks of this shape has a race in shared or global memory, under these assumptions.

    `whole`: nothing else is looked for in its global memory: no thread sees others by strong accesses, whose order it does not judge.
    `checked`: what it assumes beyond `assumptions` was checked for each launch that was made; `relations`: of parameters, part of that.
    """

    block: tuple[int, int, int]
    assumptions: tuple[str, ...]
    whole: bool = False
    checked: bool = False
    relations: tuple[str, ...] = ()

    def joined(self, other: AllLaunchesProof | None) -> AllLaunchesProof:
        """The same for the launches of another proof of the kernel, too, whose relations may be others."""
        if other is None or other.relations == self.relations:
            return self
        cases = _OR.join(" and ".join(each.relations) or _NO_RELATION for each in (other, self))
        return replace(self, relations=(_OR.join(dict.fromkeys(cases.split(_OR))),))


_OR, _NO_RELATION = " or ", "none of these"


@dataclass(frozen=True)
class KernelSummary:
    """One instrumented kernel. `launches` counts all launches; `unchecked` those that could not be recorded."""

    name: str
    launches: int = 0
    memory_sites: int = 0
    sync_sites: int = 0
    unmodelled: tuple[Unmodelled, ...] = ()
    unchecked: int = 0
    proven_launches: int = 0  # launches that were not recorded, because no launch of the kernel has a race
    global_stores: int = 0  # instructions; stores through generic addresses, which may reach other memory, are in `generic_writes`
    global_atomics: int = 0
    generic_writes: int = 0
    open_points: int = 0  # warp-synchronous instructions that a lane may bypass unnoticed
    grid_controls: int = 0  # instructions that let it run beside the kernel that is launched before or after it
    compared_launches: bool = False  # its launches were compared with those that may run beside them
    engine: str = "inline"  # how its accesses were checked: by called hooks ("inline"), or recorded and replayed ("record")
    ctas: int = 0  # recorded CTAs, of all launches
    histories: int = 0  # distinct ones among them
    recalled: int = 0  # of these, how many an earlier run of the same module has replayed without a finding; the others were replayed now
    global_accesses: int = 0  # to global memory, by single threads of recorded CTAs
    global_compared: int = 0  # those of bytes that several threads touch, and one writes
    global_proven: int = 0  # those that were proven apart before their launch, by arithmetic on its parameters
    global_checked: int = 0  # launches whose accesses to global memory were compared in full, or proven apart
    global_ctas: int = 0  # recorded CTAs for which that holds
    global_gaps: tuple[str, ...] = ()  # why races in its global memory were not looked for, or not in full
    global_shapes: tuple[str, ...] = ()  # `4x1x1 x 256x1x1` (CTAs, threads): shapes with a launch that was checked there in full, or proven
    global_missed: tuple[str, ...] = ()  # shapes without such a launch
    excluded: tuple[str, ...] = ()  # areas that the user's options leave out
    missing: tuple[str, ...] = ()  # areas that were not checked in it, as "AREA: why"
    annotations: tuple[str, ...] = ()  # of consan.h, in words
    schedules: Schedules | None = None  # None: not known
    proof: AllLaunchesProof | None = None


@dataclass(frozen=True)
class Uninstrumented:
    """A kernel that ran without instrumentation (SASS only, or excluded by a filter). `named`: a filter asked for it."""

    name: str
    launches: int = 1
    reason: str = ""
    named: bool = False


@dataclass(frozen=True)
class Cost:
    """The cost of consan for the program: of so many `elapsed` seconds of a run, its threads worked `seconds` for consan.

    Both are sums over processes. `gpu_bytes`: the most GPU memory that consan had for itself at one time; 0 on the virtual machine.
    """

    seconds: float
    elapsed: float
    gpu_bytes: int = 0


@dataclass(frozen=True)
class Report:
    """One run. Build it with `assemble`, which computes `verdict` and `incomplete`."""

    verdict: str  # "clean", "violations" or "incomplete"
    device: str  # "cpu", or the name of the GPU
    kernels: tuple[KernelSummary, ...] = ()  # those that were instrumented
    findings: tuple[Finding, ...] = ()  # suppressed ones last
    checked: tuple[str, ...] = ()  # the areas that the verdict speaks for
    not_checked: tuple[str, ...] = ()  # areas that are not checked by design, as "AREA: sentence" (verdict/coverage.py)
    uninstrumented: tuple[Uninstrumented, ...] = ()  # kernels that ran unchecked
    dropped: int = 0  # findings for which there was no room
    evicted: int = 0  # access records for which there was no room
    exit: int = 0  # the status of the program
    status: int | None = None  # the status of the command
    seed: int = 0  # of the schedule and of random arguments
    policy: str = "default"  # "default" or "isa"
    notes: tuple[str, ...] = ()  # sentences that do not change the verdict
    incomplete: tuple[str, ...] = ()  # why the run is not fully checked; empty if it is
    command: tuple[str, ...] = ()  # what reproduces the run, as typed
    sources: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # lines around the accesses: `sources.embed`
    tests: tuple[RanTest, ...] = ()  # of a pytest run
    version: str = ""  # of the consan that made the run
    cost: Cost | None = None  # of a program under `consan run`

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that count: all that are not suppressed."""
        return tuple(finding for finding in self.findings if finding.suppressed is None)

    def shown(self, *, notes: bool) -> tuple[Finding, ...]:
        """The findings that the text prints in full: notes only on request."""
        return tuple(finding for finding in self.active if notes or finding.severity != "note")

    def count(self, severity: str) -> int:
        """Number of findings of one severity, without suppressed ones."""
        return sum(finding.severity == severity for finding in self.active)

    def raise_if_racy(self) -> None:
        """Raise `RacyKernelError` if a finding is an error. Its text is the report."""
        if self.verdict == VIOLATIONS:
            raise RacyKernelError(self)

    def to_json(self) -> str:
        """The report as `consan.report/1` JSON text."""
        return FORMATS["json"](self)

    def __str__(self) -> str:
        return FORMATS["text"](self)


FORMATS: Final[dict[str, Callable[..., str]]] = {}
"""Report to text, by the name of the format. render.py fills it: the model knows no format."""


class RacyKernelError(AssertionError):
    """Raised by `Report.raise_if_racy`. `report` is the report."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"consan: verdict {report.verdict}\n{report}")
        self.report = report
