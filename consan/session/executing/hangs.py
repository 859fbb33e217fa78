"""Deadlocks of a launch on a GPU whose threads poll memory, proven from its log (R-M7).

The checker has found that no thread of the launch is known to go on: each has exited, waits at a barrier that nobody completes, or has
left a loop behind a read (consan/checker/judging/spins.py). A loop never ends if only memory can end it (PatientLoops), and nobody is left
who could write that: the launch runs alone or polls shared memory only, and the memory still has the value that was read.

Not claimed: polls of global memory by launches beside which the host or another launch may write, and of loops with several reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from consan import late
from consan.backends.base import Backend
from consan.checker.judging.spins import Polling
from consan.instrument.ptx import Function, Instruction
from consan.reports.model import Finding
from consan.reports.source.places import shown_at
from consan.reports.verdict.speaking.shared import takes_lock
from consan.reports.waiting.waiters import Waiter, deadlock_of
from consan.session.executing.endings import poll_of
from consan.session.modules.positions import waiter

if TYPE_CHECKING:
    from consan.checker.judging.checked import Checked
    from consan.instrument.sites import Site
    from consan.session.executing.launch_check import LaunchCheck
    from consan.session.modules.prepared import Prepared


def hang(started: LaunchCheck, checked: Checked, prepared: Prepared, entry: str, backend: Backend) -> Finding | None:
    """The deadlock; None if there is no proof."""
    held = _Held(prepared)
    polls = checked.polls
    quiet = started.ending.alone or all(poll.shared for poll in polls)  # only the launch itself can write its shared memory
    if not (polls and quiet and all(held.by(poll) and unchanged(poll, backend) for poll in polls)):
        return None
    polled = {poll.position for poll in checked.polls}
    others = [position for position in checked.positions if position not in polled]
    spins = [_waiter(poll, prepared, entry, started) for poll in checked.polls]
    at_barriers = [waiter(prepared, started.launched.ctaid(each.cta), each.warp, each.lanes, each.place) for each in others]
    return deadlock_of(entry, [*spins, *at_barriers], late.between.TextRelations(lambda: prepared.instrumented.module))


def unchanged(poll: Polling, backend: Backend) -> bool:
    """Whether memory has what was read, and nobody can write it."""
    return poll.latest if poll.shared else backend.read(poll.address, poll.nbytes) == poll.value.to_bytes(poll.nbytes, "little")


class _Held:
    """The loops that hold threads, in the text of a module."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared, self._known = prepared, dict[tuple[int, int], bool]()

    def by(self, poll: Polling) -> bool:
        """Whether the loop that its threads have left ends only if the memory changes that they read."""
        name = poll.site, poll.position.place
        if name not in self._known:
            self._known[name] = self._holds(_site(self._prepared, poll), poll.position.place)
        return self._known[name]

    def _holds(self, site: Site, line: int) -> bool:
        function = next(each for each in self._prepared.instrumented.module.functions if each.body and each.name == site.function)
        loops = late.patience.PatientLoops(function)
        reads = list(_at(function, site.ptx_line, site.opcode))
        return len(reads) == 1 and any(loops.held_at(head, reads[0]) for head in _at(function, line))


def _at(function: Function, line: int, opcode: str = "") -> Iterator[Instruction]:
    return (each for each in function.instructions() if each.line == line and opcode in ("", each.opcode))


def _site(prepared: Prepared, poll: Polling) -> Site:
    return prepared.instrumented.sites[poll.site - 1]


def _waiter(poll: Polling, prepared: Prepared, entry: str, started: LaunchCheck) -> Waiter:
    site, position = _site(prepared, poll), poll.position
    lock = takes_lock(site.opcode)
    polled = late.machine_faults.Polled("shared" if poll.shared else "global", poll.address, poll.nbytes, poll.value, lock=lock)
    shown = poll_of(polled, prepared, entry)
    where = started.launched.ctaid(position.cta), position.warp, position.lanes
    return Waiter(*where, "spin", shown_at(site), polls=(shown,), polled=shown.text)
