"""The input of a rule about a culprit (`__init__.py`): the finding, what synchronises around its accesses, and tests of one instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.relations import Signal, Stretches, SyncPoint
from consan.reports.culprits.waited import WaitedFor
from consan.reports.model import Access, Finding
from consan.reports.source.names import name_without_element, variable_name
from consan.reports.source.places import culprit_at

Culprit = tuple[SyncPoint, Mapping[str, str]] | SyncPoint | None


@dataclass(frozen=True)
class Case:
    """A finding and its context."""

    finding: Finding
    situation: str
    around: Stretches
    facts: Mapping[str, Any]
    words: Mapping[str, str]  # words for the sentences, in the framework's spelling
    signals: tuple[Signal, ...] = ()  # of the kernel
    around_any: Callable[[], Stretches | None] = lambda: None  # as `around`, for any threads
    awaited_count: Callable[[], tuple[SyncPoint, SyncPoint] | None] = lambda: None  # relations.Relations, in either direction

    @property
    def first(self) -> Access:
        """(1)."""
        return self.finding.accesses[0]

    @property
    def second(self) -> Access:
        """(2); (1) if there is only one access."""
        return self.finding.pair[-1]

    def variable(self, point: SyncPoint) -> str:
        """The symbol of the mbarrier of an instruction; empty if it is not known."""
        return next((each.symbol for each in self.signals if each.place.ptx_line == point.place.ptx_line), "")

    @property
    def waited(self) -> WaitedFor | None:
        """The last wait of the thread of (2) before it, as the run shows it."""
        return self.facts.get("waited")

    def is_of_first(self, point: SyncPoint) -> bool | None:
        """Whether an instruction is on the mbarrier of the finding, or on another element of its array. None: it is not known.

        Names do not tell mbarriers within a structure, or in dynamic memory, apart. Of the last wait the run does.
        """
        waited, barrier = self.waited, self.finding.barrier or {}
        if not self.inside:
            own = variable_name(self.variable(point))
            return self.mbarrier == own if self.mbarrier and own else None
        return waited.offset == barrier["offset"] if waited is not None and waited.is_wait(point.place) else None

    def may_be_of_first(self, point: SyncPoint) -> bool:
        """Whether it may be, as far as names tell."""
        known = self.is_of_first(point)
        return not self.inside if known is None else known

    @property
    def inside(self) -> bool:
        """Whether the mbarrier of the finding is within a structure, or in dynamic memory."""
        return str((self.finding.barrier or {}).get("name", "")).startswith("byte")

    @property
    def mbarrier(self) -> str:
        """The variable of the finding's mbarrier; empty if it is not known."""
        return name_without_element((self.finding.barrier or {}).get("name", ""))

    def is_waited_for(self, symbol: str) -> bool:
        """Whether an instruction of the kernel may wait for an mbarrier."""
        waits = [each.symbol for each in self.signals if each.verb == "wait" and each.barrier is None]
        return symbol in waits or "" in waits

    @property
    def operation(self) -> str:
        """The kind of asynchronous operation that (1) is."""
        return self.first.asynchronous.kind if self.first.asynchronous else ""

    @property
    def groups(self) -> str:
        """The groups that (1) belongs to; empty if it is waited for in another way."""
        return GROUPS.get(self.operation, "")


@dataclass(frozen=True)
class CulpritRule:
    """When the rule applies (kinds, and situations if not all), which instruction it finds, and its sentence."""

    kind: str
    situations: tuple[str, ...]
    find: Callable[[Case], Culprit]
    sentence: str
    fix: str

    @property
    def cause(self) -> str:
        """Its name in a finding."""
        return self.find.__qualname__.partition(".")[0].replace("_", "-")  # of the function that made it, too


# --- names -------------------------------------------------------------------------------------------------------------


def named(point: SyncPoint, words: Mapping[str, str]) -> str:
    """`__syncthreads()`, `cp.async.wait_group 1`: barriers as the framework spells them, else the opcode with its numbers."""
    number, count = constant_of(point), point.count.of(None) if point.count else None
    numbers = [] if number is None else [each for each in (number, count) if each is not None]
    if point.row.is_warp_barrier:
        return words["warp_barrier"]
    if is_wait(point) and numbers == [0]:
        return words["cta_barrier"]
    shown = numbers if is_barrier(point) or point.row.waits_for_groups else []
    return " ".join([point.short, ", ".join(map(str, shown))]).strip()


def constant_of(point: SyncPoint) -> int | None:
    """The number of a group wait, a barrier or a mask, if it is constant."""
    return point.number.of(None) if point.number else None


def thread_of(access: Access) -> str:
    """The thread in words."""
    return "thread ({},{},{})".format(*access.thread) if access.thread else "the other thread"


# --- finders -------------------------------------------------------------------------------------------------------


def last_of(points: Iterable[SyncPoint], holds: Callable[[SyncPoint], bool]) -> SyncPoint | None:
    """The last of the points for which it holds."""
    return next((point for point in reversed(tuple(points)) if holds(point)), None)


def first_of(points: Iterable[SyncPoint], holds: Callable[[SyncPoint], bool]) -> SyncPoint | None:
    """The first of the points for which it holds."""
    return next((point for point in points if holds(point)), None)


def last_wrong(points: str, chosen: Callable[[SyncPoint], bool], wrong: Callable[[SyncPoint], bool]) -> Callable[[Case], Culprit]:
    """Make a finder: the last of the chosen instructions of a stretch, if every path executes it and it is wrong."""

    def find(case: Case) -> Culprit:
        last = last_of(getattr(case.around, points), chosen)
        return last if last and last.always and wrong(last) else None

    return find


def is_barrier(point: SyncPoint) -> bool:
    """Whether it is a barrier of the CTA: `bar` or `barrier`."""
    return point.row.is_cta_barrier


def is_wait(point: SyncPoint) -> bool:
    """Whether it is a barrier at which a thread waits."""
    return is_barrier(point) and not point.row.arrives_only


def is_proxy_fence(point: SyncPoint) -> bool:
    """Whether it is a proxy fence."""
    return point.row.is_proxy_fence


def is_arrival(point: SyncPoint) -> bool:
    """Whether it is an arrival at an mbarrier."""
    return point.row.arrives_at_mbarrier


def is_release(point: SyncPoint) -> bool:
    """Whether it is an arrival at an mbarrier that publishes what came before it."""
    return is_arrival(point) and not point.is_relaxed


def is_phase_wait(point: SyncPoint) -> bool:
    """Whether it is a wait for a phase of an mbarrier."""
    return point.row.is_phase_wait


# The groups of each operation, as a row names them (`Row.completion`).
GROUPS: Final = {"cp.async": "async-group", "bulk store": "bulk-group", "wgmma": "wgmma-group"}


def group_waits(case: Case, points: Iterable[SyncPoint]) -> list[SyncPoint]:
    """The waits for groups of (1)'s kind."""
    return [point for point in points if point.row.waits_for_groups and point.row.completion == case.groups]


def commits(case: Case, point: SyncPoint) -> bool:
    """Whether an instruction commits a group of (1)'s kind."""
    return point.row.commits and point.row.completion == case.groups


def waits_for_operation(case: Case, points: Iterable[SyncPoint]) -> list[SyncPoint]:
    """The waits for the completion of (1): for its group, or for a phase of an mbarrier."""
    points = tuple(points)
    if case.groups:
        return group_waits(case, points)
    return [point for point in points if is_phase_wait(point) and case.may_be_of_first(point)]


def same(point: SyncPoint, points: Iterable[SyncPoint]) -> bool:
    """Whether the points include this one, on every path or on some."""
    return any(each.place == point.place and each.opcode == point.opcode for each in points)


def access_of(point: SyncPoint | Signal) -> Access:
    """An instruction as the access of role `culprit`."""
    return culprit_at(point.place, point.opcode)
