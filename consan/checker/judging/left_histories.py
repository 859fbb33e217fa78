"""Histories of CTAs that were not replayed: a launch had too many new ones. A later launch of the kernel that has them replays them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from consan.checker.judging.checked import Checked, Histories, HistoryName, LeftOut, needs_replay
from consan.dataclass import dataclass


@dataclass
class LeftHistories:
    """Those of a session since the last report, by kernel."""

    _left: dict[str, dict[HistoryName, LeftOut]] = field(default_factory=dict)

    def note(self, entry: str, checked: Checked, histories: Histories) -> None:
        """A launch was checked. `histories`: those that were replayed, in this launch or in another one."""
        left = self._left.setdefault(entry, {})
        left.update(checked.left)
        for name in [name for name in left if not needs_replay(name, histories)]:
            del left[name]

    def by_reason(self) -> dict[str, Mapping[str, int]]:
        """CTAs, by kernel and by the reason why they were not checked."""
        return {entry: _by_reason(left) for entry, left in self._left.items()}

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._left.clear()


def _by_reason(left: Mapping[HistoryName, LeftOut]) -> Counter[str]:
    found = Counter[str]()
    for each in left.values():
        found[each.why] += each.ctas
    return found
