"""Replays in other threads, on all cores: they are compiled code. The caller ends them when their time is over, or at a signal.

The caller may hold a lock of its session, and objects of the program that are freed may want it: these threads search for no cycles.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from consan import late
from consan.checker.compiled.patience import Patience
from consan.instrument.collection import no_collection

_SHORT = 1 << 18  # bytes of logs whose replays take less time than a pool of threads takes to start
_Result = TypeVar("_Result")


def replayed(
    replay: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], nbytes: int, patience: Patience, *, most: int = os.cpu_count() or 1
) -> list[_Result]:
    """The results of tasks whose logs have so many bytes. `most`: at a time."""
    if nbytes < _SHORT:
        return list(itertools.starmap(replay, tasks))
    with no_collection(), late.pool.ThreadPool(min(len(tasks), most)) as pool:
        return patience.result(pool.starmap_async(replay, tasks, chunksize=1))


def computed(compute: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], nbytes: int) -> list[_Result]:
    """The results of tasks that store so many bytes. Ctrl-C leaves them: what they write to must live as long as `compute`."""
    if nbytes < _SHORT or len(tasks) < 2:
        return list(itertools.starmap(compute, tasks))
    with no_collection(), late.pool.ThreadPool(min(len(tasks), os.cpu_count() or 1)) as pool:
        return pool.starmap(compute, tasks, chunksize=1)
