"""The finding of two accesses of different launches, which may run beside each other (SEMANTICS 12, R-GM14).

A framework's operation on arrays, such as a copy to the host, is a launch too: it has a line of the program, and no threads.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Final, Protocol

from consan.dataclass import dataclass
from consan.instrument.sites import Place, Site
from consan.reports.model import Access, Dim3, Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.records.numbering import unflatten
from consan.reports.records.roles import HAZARDS, action_of, of_surface, role_of_site
from consan.reports.source.names import function_name
from consan.reports.source.places import located
from consan.reports.verdict.tolerance import of_same_value
from consan.reports.words.frameworks import CUDA
from consan.reports.words.wording import describe

NO_GRID_WAIT: Final = "no-grid-wait"
NO_CHAINED_WAIT: Final = "no-chained-wait"
NO_STREAM_EDGE: Final = "no-stream-edge"
NO_DEVICE_EDGE: Final = "no-device-edge"
NO_GRAPH_EDGE: Final = "no-graph-edge"
NO_RANK_EDGE: Final = "no-rank-edge"
RANK_ENDED: Final = "rank-ended"
NO_HOST_WAIT: Final = "no-host-wait"
NO_HOST_RELEASE: Final = "no-host-release"
HOST_SCOPE: Final = "host-scope"
GIVEN_AGAIN: Final = "memory-given-again"
BETWEEN_LAUNCHES: Final = frozenset(
    (NO_GRID_WAIT, NO_CHAINED_WAIT, NO_STREAM_EDGE, NO_DEVICE_EDGE, NO_GRAPH_EDGE, NO_RANK_EDGE, RANK_ENDED, NO_HOST_WAIT,
     NO_HOST_RELEASE, HOST_SCOPE, GIVEN_AGAIN)
)  # fmt: skip


def perhaps_by_memory(first: str, second: str) -> str:
    """Why two launches were not judged that touch the same bytes."""
    return f"the launches of {first} and {second} touch the same bytes, and they may synchronise through memory: they were not judged"


def perhaps_in_order(first: str, second: str) -> str:
    """Why two operations were not judged that touch the same bytes."""
    return (
        f"{first} and {second} touch the same bytes, and the host waits for none of them by a call of CUDA: a function of the host "
        "(cudaLaunchHostFunc) may have shown it, in a way that consan does not see, that the first one is over. They were not judged"
    )


class Side(Protocol):
    """One of the two: an access of a launch, or an operation of the framework."""

    @property
    def entry(self) -> str:
        """The kernel, or empty."""

    @property
    def begin(self) -> int:
        """The first byte, where the launch had it."""

    @property
    def writes(self) -> bool:
        """Whether it writes."""

    @property
    def framework(self) -> str:
        """The framework whose words the fix uses."""

    @property
    def what(self) -> str:
        """The operation, in words."""

    def access(self, begin: int) -> Access:
        """The access as reports show it. `begin`: the address of its first byte there."""


@dataclass(frozen=True)
class LaunchSide:
    """An access of one launch: where its kernel is, and which thread it was."""

    module: ModuleSites
    entry: str
    grid: Dim3
    block: Dim3
    cta: int
    thread: int
    site: int
    begin: int
    nbytes: int
    writes: bool
    name: str  # of the bytes
    rank_grid: int = 0  # CTAs of a rank in the last dimension of the grid, if there are several ranks

    @property
    def framework(self) -> str:
        """The framework of the kernel."""
        return self.module.framework

    @property
    def what(self) -> str:
        """The kernel's name."""
        return function_name(self.entry)

    def access(self, begin: int) -> Access:
        """The access as reports show it."""
        site = self.module.site(self.site)
        assert site is not None
        return of_surface(replace(self._of(site, begin), name=self.name, **located(site)), site)

    def _of(self, site: Site, begin: int) -> Access:
        action, (x, y, z) = action_of(site), unflatten(self.cta, self.grid)
        rank, z = divmod(z, self.rank_grid) if self.rank_grid else (None, z)
        return Access(
            role=role_of_site(site, action), op=site.opcode, block=(x, y, z), rank=rank,
            thread=unflatten(self.thread, self.block), warp=self.thread // 32, lane=self.thread % 32,
            bytes=(begin, begin + self.nbytes), space="global", asynchronous=action,
            proxy="async" if action is not None and action.kind != "cp.async" else "generic",
        )  # fmt: skip


@dataclass(frozen=True)
class TouchedSide:
    """Bytes that an instruction of one launch touches; which thread does so is not known. `place`: None if its line is not known."""

    framework: str
    entry: str
    place: Place | None
    begin: int
    nbytes: int
    writes: bool
    name: str  # of the bytes

    @property
    def what(self) -> str:
        """The kernel's name."""
        return function_name(self.entry)

    def access(self, begin: int) -> Access:
        """The access as reports show it."""
        where = {} if self.place is None else located(self.place)
        return Access(
            role="write" if self.writes else "read", op="" if self.place is None else self.place.opcode, bytes=(begin, begin + self.nbytes),
            space="global", name=self.name, **where,
        )  # fmt: skip


@dataclass(frozen=True)
class OperationSide:
    """An operation on arrays that a framework makes without a kernel of the program, and the line of the program."""

    what: str
    file: str
    line: int
    begin: int = 0
    nbytes: int = 0
    writes: bool = False
    entry: str = ""
    framework: str = CUDA
    name: str = ""  # of the bytes

    def access(self, begin: int) -> Access:
        """The access as reports show it."""
        return Access(
            role="write" if self.writes else "read", op=self.what, file=self.file, line=self.line, column=1 if self.line else 0,
            bytes=(begin, begin + self.nbytes), space="global", name=self.name,
        )  # fmt: skip


@dataclass(frozen=True)
class StreamEdge:
    """The edge between two streams that is missing: their names, and how a program makes it."""

    first_stream: str
    second_stream: str
    stream_edge: str


def launch_race(
    first: Side, second: Side, situation: str, edge: StreamEdge, *, ahead: int, count: int, ctas: int, same_value: bool
) -> Finding:  # fmt: skip
    """The finding. `first` is of the earlier launch, `situation` one of those above; `ahead`: how far the second begins behind the first.

    `count`: how many accesses of the second race, in how many CTAs. Both have addresses of the second launch.
    """
    finding = Finding(
        kind="scope" if situation == HOST_SCOPE else "global-race",
        hazard=HAZARDS[first.writes, second.writes], kernel=second.entry or first.entry or second.what, count=count,
        ctas=ctas, accesses=(first.access(second.begin - ahead), second.access(second.begin)),
    )  # fmt: skip
    names = {"first_kernel": first.what, "second_kernel": second.what, **asdict(edge)}
    described = describe(finding, situation, framework=second.framework if second.entry else first.framework, **names)
    return of_same_value(described) if same_value else described
