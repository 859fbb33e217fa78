"""Two launches, or operations: the later one may run beside the earlier one."""

from __future__ import annotations

from dataclasses import replace

from consan.checker.compiled.concurrent_launches import GPU_SCOPE, SYS_SCOPE, Conflict, may_signal, racing
from consan.dataclass import dataclass
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.pairs.done import Done
from consan.session.comparing.streams import Numbers, on_two_devices

Raced = tuple[list[Conflict], bool, bool]  # the conflicts, whether accesses of one are not known, and whether one may signal the other


@dataclass(frozen=True)
class LaunchPair:
    """Such two. `number`: of the earlier one. `start`: what is over when the later one starts.

    `waited`: a `griddepcontrol.wait` of the later one waits for the earlier one. `perhaps`: the host may know the earlier one to be over.
    """

    by: Comparisons
    number: int
    earlier: Done
    later: Done
    start: Numbers
    waited: bool
    perhaps: bool

    @property
    def is_awaited(self) -> bool:
        """Whether accesses of one are still to come."""
        return any(each.awaited is not None and not each.awaited.there for each in (self.earlier, self.later))

    @property
    def on_two_devices(self) -> bool:
        """Whether they run on two devices."""
        return on_two_devices(self.earlier.stream, self.later.stream)

    @property
    def scope(self) -> int:
        """The scope that orders them."""
        return SYS_SCOPE if self.on_two_devices else GPU_SCOPE

    @property
    def without_rows(self) -> LaunchPair:
        """The pair for a report: it is only known that there are accesses."""
        earlier, later = (each if each.rows is None else replace(each, rows=each.rows[:0]) for each in (self.earlier, self.later))
        return replace(self, earlier=earlier, later=later)

    def raced(self) -> Raced:
        """Compare their accesses. Any thread may."""
        if self.earlier.rows is None or self.later.rows is None:
            return [], True, False
        (first, last), (begin, end) = self.earlier.span, self.later.span
        if max(first, begin) >= min(last, end):
            return [], False, False
        found, unknown = racing(self.earlier.rows, self.later.rows, waited=self.waited, scope=self.scope)
        fences = self.earlier.fences, self.later.fences
        return found, unknown, bool(found) and may_signal(self.earlier.rows, self.later.rows, fences, self.scope)
