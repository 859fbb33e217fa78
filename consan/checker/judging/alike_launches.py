"""The look at the global memory of a launch whose logs are those of an earlier one: it did the same, if they are all that a replay reads.

To replay the accesses of many threads takes a hundred times as long as to compare their compact logs. A launch in which something was
found is replayed each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from consan.checker.compiled.concurrent_launches import Retained
from consan.checker.judging.checked import Checked
from consan.checker.judging.tally import Tally
from consan.checker.logs.launch import Launch, NotExpanded
from consan.checker.logs.memory import MOST_GRID
from consan.checker.logs.recorded_launch import RecordedLaunch
from consan.dataclass import dataclass

MOST_ROWS: Final = 1 << 20  # accesses of a result that is kept
MOST_READ: Final = 1 << 26  # bytes of logs, most of which may be empty
Gaps = tuple[str, ...]


@dataclass(frozen=True)
class _Look:
    """A look that was made. `plain`: it has nothing but accesses and numbers."""

    of: Checked
    gaps: Gaps
    tally: Tally
    retained: Retained | None
    plain: bool


def look_once(launch: RecordedLaunch, checked: Checked, key: Hashable | None, look: Callable[[], Gaps]) -> Gaps:
    """Look at a launch, or take over what an earlier one with the same logs has shown.

    `key`: what a look depends on besides the logs; None: it is made in any case.
    `look`: adds what it finds to `checked`, and gives what was not checked.
    """
    data = None if key is None else _evidence(launch)
    if data is None:
        return look()
    assert isinstance(launch, Launch)
    shape = launch.grid, launch.block, launch.cluster, launch.window()
    found: _Look = launch.memory.grids.of((shape, key), data, lambda: _looked(checked, look))
    if found.of is checked:
        return found.gaps
    if not found.plain:
        return look()
    checked.alike, checked.retained = True, found.retained
    checked.tally.add(found.tally)
    return ()


def _evidence(launch: RecordedLaunch) -> bytes | None:
    """All that full logs are computed from; None: it is much, or more is read."""
    if not isinstance(launch, Launch) or launch.silent or launch.compact is None or launch.log_bytes > MOST_READ:
        return None
    if launch.hangs or launch.stopped or launch.memory_before:
        return None
    ctas = range(launch.ctas)
    try:
        logs, left = launch.stored(ctas), launch.left(ctas)
    except NotExpanded:
        return None
    used = (launch.used_lines() or launch.compact.most) + 1
    if logs[:, -1].any() or left.any() or logs[:, :used].nbytes > MOST_GRID:
        return None
    return b"".join((np.ascontiguousarray(logs[:, :used]).data, launch.constants()))


def _looked(checked: Checked, look: Callable[[], Gaps]) -> _Look:
    before, checked.tally = checked.tally, Tally()
    known = _findings(checked)
    gaps = look()
    made, checked.tally = checked.tally, before
    before.add(made)
    plain = not gaps and _findings(checked) == known and not (checked.share or checked.pairs or checked.by_address)
    retained = checked.retained
    plain = plain and (retained is None or len(retained.rows) <= MOST_ROWS)
    return _Look(checked, gaps, made, retained if plain else None, plain)


def _findings(checked: Checked) -> tuple[int, int, dict[str, int]]:
    return len(checked.found), len(checked.collected.lanes_gone), dict(checked.gaps)
