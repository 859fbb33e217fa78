"""Replays on all cores: they are compiled code."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from multiprocessing.pool import ThreadPool
from typing import Any, TypeVar

_SHORT = 1 << 18  # bytes of logs whose replays take less time than a pool of threads takes to start
_Result = TypeVar("_Result")


def replayed(replay: Callable[..., _Result], tasks: Sequence[tuple[Any, ...]], nbytes: int) -> list[_Result]:
    """The results of tasks whose logs have so many bytes."""
    if nbytes < _SHORT:
        return list(itertools.starmap(replay, tasks))
    with ThreadPool(min(len(tasks), os.cpu_count() or 1)) as pool:
        return pool.starmap(replay, tasks, chunksize=1)
