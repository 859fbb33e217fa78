"""The kinds of random programs, and kernels of several of them."""

from __future__ import annotations

from collections.abc import Callable

import oracle_programs_matrix
from hypothesis import strategies as st
from oracle_programs import BUFFER, THREADS, Batch, Program, synchronous, with_copies
from oracle_programs_async import asynchronous
from oracle_programs_control import divergent
from oracle_programs_matrix import matrix

STRATEGIES: dict[str, Callable[[], st.SearchStrategy[Program]]] = {
    "synchronous": synchronous,
    "with_copies": with_copies,
    "asynchronous": asynchronous,
    "divergent": divergent,
    "matrix": matrix,
}
_SIZES = {"matrix": (oracle_programs_matrix.THREADS, oracle_programs_matrix.BUFFER)}


def batches(strategy: str, size: int = 8) -> st.SearchStrategy[Batch]:
    """Kernels of so many programs of a kind."""
    threads, buffer = _SIZES.get(strategy, (THREADS, BUFFER))
    return st.lists(STRATEGIES[strategy](), min_size=size, max_size=size).map(lambda found: Batch(tuple(found), threads, buffer))
