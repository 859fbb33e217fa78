"""Which findings of hooks, records, ends of launches and texts a report has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from consan.reports.model import Access, Finding
from consan.reports.verdict.speaking.selection import selected


def at(line: int, role: str = "write") -> Access:
    return Access(role, "st", file="k.cu", line=line, ptx_line=10 * line)


OUTSIDE, OUTSIDE_TOO = (Finding("out-of-bounds", "k", accesses=(at(line),)) for line in (5, 7))
MISUSE = Finding("barrier-misuse", "k", situation="thread-count", accesses=(at(3),))
TRAP, OTHER_TRAP = (Finding("fault", "k", accesses=(at(line),)) for line in (3, 4))
RACE = Finding("data-race", "k", accesses=(at(1), at(2, "read")))


def left(
    hooks: Iterable[Finding] = (), records: Iterable[Finding] = (), ends: Sequence[Finding] = (), unknown: Mapping[str, str] | None = None
) -> list[Finding]:
    return selected(hooks, records, ends, (), unknown or {})[0]


def test_a_fault_that_the_kernel_recorded_too_counts_once() -> None:
    assert left([OUTSIDE], ends=[OUTSIDE, OUTSIDE_TOO]) == [OUTSIDE_TOO, OUTSIDE]


def test_a_trap_of_a_misused_barrier_is_the_misuse() -> None:
    assert left(records=[MISUSE], ends=[TRAP, OTHER_TRAP]) == [OTHER_TRAP, MISUSE]


def test_hooks_say_nothing_of_kernels_whose_order_they_do_not_know() -> None:
    other = replace(RACE, kernel="other")
    found, gaps = selected([RACE, other], [RACE], [TRAP], [], {"k": "tcgen05.commit", "q": "tcgen05.commit"})
    assert found == [TRAP, other, RACE]
    assert gaps == ["1 finding in k left out: called hooks do not know how tcgen05.commit orders accesses"]


def test_a_deadlock_behind_a_divergent_barrier_is_its_end() -> None:
    """A CTA without such an instruction keeps its own."""
    came = {"block": [0, 0, 0], "warp": 0, "lanes": 1, "why": "came"}
    divergent = Finding("barrier-misuse", "k", message="m", accesses=(at(3, "barrier"),), waiters=(came,))
    stuck = Finding("deadlock", "k", waiters=({"block": [0, 0, 0], "ptx_line": 90},))
    assert [each.message for each in left(records=[divergent, stuck])] == ["m; so the launch ends in a deadlock"]
    elsewhere = replace(stuck, waiters=({"block": [1, 0, 0], "ptx_line": 90},))
    assert [each.kind for each in left(records=[divergent, elsewhere])] == ["barrier-misuse", "deadlock"]
