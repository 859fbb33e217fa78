"""Which clusters of a launch have their logs read, where all logs would be too many bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from consan.checker.compiled.replay import MOST_SHARED, History

AT_ONCE, _MANY_AT_ONCE = 16, 64  # histories that are read at once, and those whose logs are short
_SHORT_LOG: Final = 1 << 20  # bytes
LEAST: Final = 2  # clusters of a share: one alone meets no other


def spread(clusters: int, count: int) -> frozenset[int]:
    """`count` numbers out of so many, at equal distances; all if there are fewer."""
    return frozenset(number * clusters // count for number in range(count)) if count < clusters else frozenset(range(clusters))


def share(clusters: int, count: int) -> frozenset[int]:
    """About `count` clusters: neighbours, whose tiles touch, and as many at equal distances, which meet at what all clusters use."""
    return frozenset(range(count // 2)) | spread(clusters, count - count // 2)


def read_clusters(
    read: Callable[[Sequence[int]], Sequence[History]], clusters: Sequence[int], most_bytes: int, *, shares: bool
) -> dict[int, History] | None:
    """The histories of clusters by their numbers, or, if the caller `shares`, of as many as have logs of `most_bytes`. None: too many."""
    found, nbytes, wanted = dict[int, History](), 0, tuple(clusters)
    while len(found) < len(wanted):
        short = 0 < nbytes < len(found) * _SHORT_LOG
        some = wanted[len(found) :][: _MANY_AT_ONCE if short else AT_ONCE]
        found |= zip(some, read(some), strict=True)
        nbytes = sum(history.log.nbytes for history in found.values())
        few = most_bytes * len(found) // max(1, nbytes)  # have logs of that many bytes
        if any(found[cluster].shared_bytes > MOST_SHARED for cluster in some) or few < (LEAST if shares else len(found)):
            return None
        if shares and few < len(wanted):
            some_of = {clusters[place] for place in share(len(clusters), few)}
            wanted = (*found, *sorted(some_of - found.keys()))[:few]
    return found
