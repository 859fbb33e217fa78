"""The clusters of a launch by their histories. A CTA by itself is a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from consan.checker.logs.names import Sums, joined, names_of
from consan.dataclass import dataclass

Dim3 = tuple[int, int, int]
_NO_GROUP = -1


def clusters_of(grid: Dim3, cluster: Dim3) -> npt.NDArray[np.int64]:
    """The linear %ctaid of the CTAs that are checked together, by rank: clusters x CTAs of a cluster (ISA "%cluster_ctarank")."""
    (x, y, z), (cx, cy, cz) = grid, cluster
    numbers = np.arange(x * y * z).reshape(z // cz, cz, y // cy, cy, x // cx, cx)
    return np.ascontiguousarray(numbers.transpose(0, 2, 4, 1, 3, 5).reshape(-1, cx * cy * cz))


@dataclass(frozen=True)
class Group:
    """Clusters with one history. `name`: its 128 bits."""

    members: tuple[int, ...]
    name: bytes


@dataclass(frozen=True)
class Grouped:
    """The clusters of a launch: the distinct histories, and the clusters whose threads have not all exited."""

    groups: tuple[Group, ...]
    unended: tuple[int, ...]

    @property
    def clusters(self) -> int:
        """How many clusters the launch has."""
        return sum(len(group.members) for group in self.groups) + len(self.unended)

    def by_cluster(self) -> npt.NDArray[np.int32]:
        """The number of each cluster's group, -1 for a cluster that has not ended."""
        found = np.full(self.clusters, _NO_GROUP, np.int32)
        for number, group in enumerate(self.groups):
            found[list(group.members)] = number
        return found

    @classmethod
    def from_clusters(cls, by_cluster: npt.NDArray[np.int32], names: Sequence[bytes]) -> Grouped:
        """The inverse of `by_cluster`. ValueError if a group has no cluster, or no name."""
        order = np.argsort(by_cluster, kind="stable")
        bounds = np.searchsorted(by_cluster[order], np.arange(len(names) + 1))
        if by_cluster.size and not _NO_GROUP <= by_cluster.min() <= by_cluster.max() < len(names):
            raise ValueError("a cluster is in no group")
        members = [tuple(order[begin:end].tolist()) for begin, end in itertools.pairwise(bounds)]
        if not all(members):
            raise ValueError("a group has no cluster")
        return cls(tuple(map(Group, members, names)), tuple(order[: bounds[0]].tolist()))


def grouped(sums: Sums, clusters: npt.NDArray[np.int64], shared: bytes = b"") -> Grouped:
    """The clusters by the sums of their CTAs. `clusters`: the CTAs of each. `shared`: a part of the name of each group."""
    finished = sums.ended[clusters].all(axis=1)
    whole = finished.nonzero()[0]
    known: dict[bytes, list[int]] = {}
    for cluster, name in zip(whole.tolist(), names_of(sums, clusters[whole]), strict=True):
        known.setdefault(name, []).append(cluster)
    groups = tuple(Group(tuple(members), joined(name, shared)) for name, members in known.items())
    return Grouped(groups, tuple((~finished).nonzero()[0].tolist()))
