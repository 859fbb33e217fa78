"""How a launch is made: with or without global memory, with or without a log, and what is not checked.

`plan` decides from the texts of a module's forms, the launch and the options. It asks no device and changes nothing: the judge
(`executing/judging.py`) carries a plan out. Where a log turns out to have no room, the judge adds that to the launch and plans again.

Not decided here: whether a launch is checked at all (`selection.py`), the size of its log (`consan/checker/logs/log_lines.py`), whether the
program goes on beside a launch (`executing/background.py`), and in which of its launches a framework's global memory is looked at
(`global_looks.py`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Final, Generic, Protocol, TypeVar

from consan.backends.base import Dim3
from consan.checker.logs.pieces import NoRoom
from consan.dataclass import dataclass
from consan.instrument.record import Recorded
from consan.reports.model import AllLaunchesProof
from consan.session.modules.parameters import Asked, unknown
from consan.session.modules.prepared import KnownLogs, LogShape
from consan.session.planning.decided import may_be_stopped
from consan.session.planning.launch_sizes import most_together, too_many
from consan.session.planning.options import SessionOptions

LONGEST_CHECK: Final = 180.0  # seconds that the replays of a launch on a GPU may take
MOST_SLICES: Final = 64  # of a launch whose logs have no room; of pairs of sets the number grows with the square of the sets
SLOW_SAMPLE: Final = 8  # CTAs that are replayed of later launches of a kernel whose replays take long
_NO_CLUSTER: Final = (1, 1, 1)


class ModuleForm(Protocol):
    """The facts that a plan reads of a form of a module (`Prepared`). `recorded`: None with called hooks."""

    number: int
    recorded: Recorded | None
    logs: KnownLogs

    def number_of(self, entry: str) -> int:
        """The place of a kernel among the entries."""
        ...


F = TypeVar("F", bound=ModuleForm)


class Unasked(NoRoom):
    """The launch is too large for global memory to be looked at unasked: why."""


@dataclass(frozen=True)
class PlannedKernel(Generic[F]):
    """A kernel in the form that its module has. `light`: the form without global memory. `proven`: accesses that are proven apart.

    `always`: the proof that no launch of it has a race, if it covers this one. `shown`: whether a recorded launch shows the rest of what
    this one does. All four are called only where the plan depends on them: they take time.
    """

    form: F
    entry: str
    light: Callable[[], F]
    proven: Callable[[], int] = lambda: 0
    always: Callable[[], AllLaunchesProof | None] = lambda: None
    shown: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class PlannedLaunch:
    """A launch. `wanted`: its accesses are asked for. `no_room`: for a log with global memory or without, by the number of the form.

    `unfollowed`: why no log can be given to it and read behind it; empty if one can. `first`: CTAs that start; 0: all. `judged`: one of its
    shape was judged. `asked`: reads its parameters, for the size of its log. `divides`: into so many slices, where the logs of all CTAs
    have no room; 0: none.
    """

    grid: Dim3
    block: Dim3
    cluster: Dim3 = _NO_CLUSTER
    unfollowed: str = ""
    wanted: bool = False
    first: int = 0
    judged: bool = False
    divides: int = MOST_SLICES
    asked: Asked = unknown
    no_room: Mapping[int, NoRoom] = field(default_factory=dict)

    @property
    def ctas(self) -> int:
        """The CTAs that start."""
        return min(math.prod(self.grid), self.first or math.prod(self.grid))


@dataclass(frozen=True)
class LogPlan:
    """The log of a launch, and how it is replayed. `cluster`: CTAs that are replayed as one. 0 `together`, `sample` or `first`: all."""

    kernel: int  # its place among the entries
    grid: Dim3
    block: Dim3
    cluster: Dim3
    roomy: bool  # it may take all memory for logs
    sample: int
    slow: bool  # it is sampled because earlier replays took long
    together: int
    seconds: float  # that replays may take
    hurried: bool  # whether they end then, though the user has not asked for less
    first: int = 0  # CTAs that start, and have a log
    divides: int = 0  # slices at most, if it has no room

    @property
    def shape(self) -> LogShape:
        """The parts that launches with logs of one length share."""
        return self.kernel, self.grid, self.block, self.cluster


class Gap(enum.Enum):
    """The reasons why something is not checked."""

    GLOBAL = enum.auto()  # global memory of the kernel, because its form with global memory is not recorded
    ROOM = enum.auto()  # the same, because the log has no room
    RECORD = enum.auto()  # all of it: it runs as it is


@dataclass(frozen=True)
class KnownBefore:
    """Proofs before a launch. `accesses` to global memory, if it is recorded without for that; `always`: it has no race at all."""

    accesses: int = 0
    always: AllLaunchesProof | None = None


NOTHING_KNOWN: Final = KnownBefore()


@dataclass(frozen=True)
class LaunchPlan(Generic[F]):
    """How a launch is made. Without a `log` it runs as it is: with a gap, or by a proof. One with called hooks has neither."""

    form: F
    log: LogPlan | None = None
    proven: KnownBefore = NOTHING_KNOWN
    gaps: tuple[tuple[Gap, F, NoRoom | str], ...] = ()


def plan(kernel: PlannedKernel[F], launch: PlannedLaunch, options: SessionOptions) -> LaunchPlan[F]:
    """How a launch is made."""
    recorded = kernel.form.recorded
    if recorded is None:
        return LaunchPlan(kernel.form)
    if why := recorded.refused.get(kernel.entry, ""):
        return _refused(kernel, launch, options, why)
    if launch.unfollowed:
        return LaunchPlan(kernel.form, gaps=((Gap.RECORD, kernel.form, launch.unfollowed),))
    if (made := _always(kernel, launch, options)) is not None:
        return made
    if (accesses := _proven(kernel, launch)) and (light := _without_global(kernel)) is not None:
        return replace(_recorded(replace(kernel, form=light), launch, options), proven=KnownBefore(accesses))
    return _recorded(kernel, launch, options)


def _always(kernel: PlannedKernel[F], launch: PlannedLaunch, options: SessionOptions) -> LaunchPlan[F] | None:
    """The plan where no launch of the kernel has a race, unless its log or its accesses are wanted. None: there is no such proof.

    A proof does not speak of what is no race. So launches are recorded without global memory, but those that one of their shape has shown.
    """
    recorded = kernel.form.recorded
    assert recorded is not None
    if launch.wanted or options.keep_histories or (proof := kernel.always()) is None:
        return None
    light = _without_global(kernel) if recorded.has_global(kernel.entry) else kernel.form
    stops = may_be_stopped(recorded, kernel.entry, options)
    if light is not None and launch.judged and not stops and kernel.shown():
        return LaunchPlan(light, proven=KnownBefore(always=proof))
    return None if light is None else replace(_recorded(replace(kernel, form=light), launch, options), proven=KnownBefore(always=proof))


def _proven(kernel: PlannedKernel[F], launch: PlannedLaunch) -> int:
    """How many accesses are proven apart, where the proof serves: if a kernel hangs that polls, its log names what it polls."""
    recorded = kernel.form.recorded
    assert recorded is not None
    polls = recorded.leaves and recorded.kernel(kernel.entry).polls
    return kernel.proven() if recorded.prunes and not polls and not launch.wanted else 0


def _without_global(kernel: PlannedKernel[F]) -> F | None:
    """The form that records the kernel without global memory. None: there is none."""
    light = kernel.light()
    recorded = light.recorded
    return None if recorded is None or kernel.entry in recorded.refused or recorded.has_global(kernel.entry) else light


def _refused(kernel: PlannedKernel[F], launch: PlannedLaunch, options: SessionOptions, why: str) -> LaunchPlan[F]:
    """A kernel that this form does not record takes the form without global memory, or runs as it is."""
    recorded = kernel.form.recorded
    assert recorded is not None
    light = kernel.light() if recorded.has_global(kernel.entry) else kernel.form
    if light.recorded is None or kernel.entry in light.recorded.refused:
        return LaunchPlan(light, gaps=((Gap.RECORD, light, why),))
    return _with_gap(Gap.GLOBAL, light, why, plan(replace(kernel, form=light), launch, options))


def _recorded(kernel: PlannedKernel[F], launch: PlannedLaunch, options: SessionOptions) -> LaunchPlan[F]:
    """A kernel that its form records. Without room for its log it takes the form without global memory, or runs as it is."""
    form, entry = kernel.form, kernel.entry
    lack = launch.no_room.get(form.number) or _unasked(form, entry, launch, options)
    if lack is None:
        return LaunchPlan(form, log_of(form, entry, launch, options))
    assert form.recorded is not None
    light = _without_global(kernel) if form.recorded.has_global(entry) else None
    if light is not None:
        return _with_gap(Gap.ROOM, light, lack, plan(replace(kernel, form=light), launch, options))
    return LaunchPlan(form, gaps=((Gap.ROOM, form, lack), (Gap.RECORD, form, str(lack))))


def _unasked(form: ModuleForm, entry: str, launch: PlannedLaunch, options: SessionOptions) -> NoRoom | None:
    assert form.recorded is not None
    if options.global_required:
        return None
    why = too_many(form.recorded, form.number_of(entry), launch.ctas, math.prod(launch.block))
    return Unasked(why) if why else None


def _with_gap(gap: Gap, form: F, why: NoRoom | str, made: LaunchPlan[F]) -> LaunchPlan[F]:
    return replace(made, gaps=((gap, form, why), *made.gaps))


def log_of(form: ModuleForm, entry: str, launch: PlannedLaunch, options: SessionOptions) -> LogPlan:
    """The log of a launch of a kernel that its form records. A user who names how much is to be checked waits for the replay."""
    recorded, number = form.recorded, form.number_of(entry)
    assert recorded is not None
    cluster = launch.cluster if launch.cluster != _NO_CLUSTER else recorded.kernels[number].cluster
    if any(extent % size for extent, size in zip(launch.grid, cluster, strict=True)):
        cluster = _NO_CLUSTER  # the launch will fail
    hurried = recorded.leaves and not (options.exhaustive or options.sample or options.global_required)
    slow = form.logs.slow and hurried and not recorded.has_global(entry)
    return LogPlan(
        number, launch.grid, launch.block, cluster,
        roomy=form.logs.roomy or form.logs.unrepeatable, sample=options.sample or (SLOW_SAMPLE if slow else 0), slow=slow,
        together=0 if options.global_required else most_together(math.prod(launch.block)),
        seconds=LONGEST_CHECK if hurried else math.inf, hurried=hurried, first=launch.first if cluster == _NO_CLUSTER else 0,
        divides=launch.divides,
    )  # fmt: skip
