"""What the oracle says of a launch: pairs of sites, each with the kinds that are right for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Pair = frozenset[int]

RACE, WAIT, PROXY, UNINIT = "data-race", "missing-wait", "missing-proxy-fence", "uninitialized-read"
MISUSE, LIFETIME, SCOPE, GLOBAL = "barrier-misuse", "lifetime", "scope", "global-race"


@dataclass
class Found:
    """A pair of sites (one line where both are the same) with every kind that is right for it."""

    kinds: set[str] = field(default_factory=set)
    severity: str = "warning"
    count: int = 0
    spans: set[tuple[int, int]] = field(default_factory=set)  # bytes
    within: bool = False  # at least once of two threads of one warp

    def touches(self, other: Found) -> bool:
        """Whether the two have bytes in common."""
        return any(low < high_ and low_ < high for low, high in self.spans for low_, high_ in other.spans)


@dataclass
class Verdict:
    """What the oracle says of one launch."""

    pairs: dict[Pair, Found] = field(default_factory=dict)
    maybe_uninitialized: set[int] = field(default_factory=set)  # lines of reads no write is ordered before
    uninitialized: dict[int, set[int]] = field(default_factory=dict)  # of those, the bytes that nobody writes unordered either
    kinds: set[str] = field(default_factory=set)  # beyond pairs: deadlock
    divergences: list[set[Pair]] = field(default_factory=list)  # of each CTA that has any, the divergent points (oracle_lanes.py)
    undefined: set[int] = field(default_factory=set)  # all lines of CTAs with such points
    merged: Verdict | None = None  # the same with the bound of merged lanes

    @property
    def divergent(self) -> set[Pair]:
        """The divergent points of all CTAs."""
        return set[Pair]().union(*self.divergences)

    @property
    def clean(self) -> bool:
        """Whether there is nothing that is an error."""
        return self.clean_but(lambda found: False)

    def clean_but(self, excused: Callable[[Found], bool]) -> bool:
        """Whether there is nothing that is an error, but for some pairs."""
        right = (found.severity != "error" or excused(found) for found in self.pairs.values())
        return not self.uninitialized and not self.kinds and not self.divergences and all(right)

    def merge(self, other: Verdict) -> None:
        """Add what another CTA has."""
        for pair, found in other.pairs.items():
            mine = self.pairs.setdefault(pair, Found())
            mine.kinds |= found.kinds
            mine.count += found.count
            mine.spans |= found.spans
            mine.within |= found.within
            mine.severity = "error" if "error" in (mine.severity, found.severity) else "warning"
        self.maybe_uninitialized |= other.maybe_uninitialized
        for line, missing in other.uninitialized.items():
            self.uninitialized.setdefault(line, set()).update(missing)
        self.divergences += other.divergences
        self.undefined |= other.undefined
