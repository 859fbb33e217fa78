"""The kinds of random programs, and kernels of several of them."""

from __future__ import annotations

from collections.abc import Callable

import draws as st
import oracle_programs_cluster
import oracle_programs_matrix
from oracle_programs import Batch, Program, synchronous, with_copies
from oracle_programs_async import asynchronous
from oracle_programs_cluster import cluster_ending, clusters
from oracle_programs_control import divergent
from oracle_programs_ending import ending
from oracle_programs_global import GlobalBatch, global_memory, of_ranks
from oracle_programs_lanes import lanes
from oracle_programs_matrix import matrix
from oracle_programs_multimem import MultimemBatch, multimem

STRATEGIES: dict[str, Callable[[], st.SearchStrategy[Program]]] = {
    "synchronous": synchronous,
    "with_copies": with_copies,
    "asynchronous": asynchronous,
    "divergent": divergent,
    "lanes": lanes,
    "ending": ending,
    "matrix": matrix,
    "clusters": clusters,
    "cluster_ending": cluster_ending,
}
# With several CTAs, on global memory: for engines that follow it.
OF_GRIDS: dict[str, Callable[[], st.SearchStrategy[Program]]] = {"global": global_memory}
# With several devices: how many, and the CTAs of each.
OF_RANKS = {"ranks": (2, 2), "three_ranks": (3, 1), "four_ranks": (4, 1), "multimem": (2, 1), "multimem_of_three": (3, 1)}
_CLUSTERS = {"threads": oracle_programs_cluster.THREADS, "ctas": oracle_programs_cluster.CTAS}
_SIZES = {
    "matrix": {"threads": oracle_programs_matrix.THREADS, "buffer": oracle_programs_matrix.BUFFER},
    "clusters": _CLUSTERS,
    "cluster_ending": _CLUSTERS,
}


def batches(strategy: str, size: int = 8) -> st.SearchStrategy[Batch]:
    """Kernels of so many programs of a kind."""
    if strategy in OF_GRIDS:
        return st.lists(OF_GRIDS[strategy](), min_size=size, max_size=size).map(lambda found: GlobalBatch(tuple(found)))
    if strategy in OF_RANKS:
        ranks, ctas = OF_RANKS[strategy]
        program, made = (multimem, MultimemBatch) if strategy.startswith("multimem") else (of_ranks, GlobalBatch)
        programs = st.lists(program(ranks * ctas), min_size=size, max_size=size)
        return programs.map(lambda found: made(tuple(found), ctas=ctas, ranks=ranks))
    sizes = _SIZES.get(strategy, {})
    return st.lists(STRATEGIES[strategy](), min_size=size, max_size=size).map(lambda found: Batch(tuple(found), **sizes))
