"""The bytes of boxes of tensor maps, against all elements one by one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from consan.ranges import boxes
from consan.ranges.boxes import Unread, box_of
from consan.ranges.values import Fork
from consan.tensormap.description import TensorMapInfo

CTAS, THREADS = 3, 2


def _map(rng: random.Random) -> TensorMapInfo:
    rank = rng.randrange(1, 4)
    dims = tuple(rng.randrange(1, 12) for _ in range(rank))
    strides = list(itertools.accumulate(dims[:-1], lambda total, extent: total * extent + 16 * rng.randrange(2), initial=4))[1:]
    box = tuple(rng.randrange(1, 6) for _ in range(rank))
    return TensorMapInfo("u32", 0, dims, tuple(strides), box, tuple(rng.choice((1, 1, 2)) for _ in range(rank)))


def _elements(info: TensorMapInfo, first: tuple[int, ...]) -> set[int]:
    """The bytes of a box, from the text of the driver API."""
    steps = (1, *info.element_strides[1:])
    found = set[int]()
    for place in itertools.product(
        *(range(start, start + extent, step) for start, extent, step in zip(first, info.box, steps, strict=True))
    ):
        if all(0 <= at < extent for at, extent in zip(place, info.dims, strict=True)):
            begin = sum(at * stride for at, stride in zip(place, (4, *info.strides), strict=True))
            found |= set(range(begin, begin + 4))
    return found


def _check(info: TensorMapInfo, parts: list[Any], ctas: Any, threads: Any) -> int:
    """Compare all boxes of some CTAs and threads. Returns how many forms they have."""
    given = [(cta[ctas], thread[threads]) for cta, thread in parts]
    try:
        box = box_of(info, given)
    except Fork as fork:
        every = threads if fork.of_threads else ctas
        rest = [every[mask] for mask in fork.sets]
        return sum(_check(info, parts, *((ctas, each) if fork.of_threads else (each, threads))) for each in rest)
    for cta, thread in itertools.product(range(len(ctas)), range(len(threads))):
        wanted = _elements(info, tuple(int(of_cta[cta] + of_thread[thread]) for of_cta, of_thread in given))
        found = set[int]()
        for row in () if box is None else box.rows + (box.of_cta[cta % box.of_cta.size] + box.of_thread[thread % box.of_thread.size]):
            found |= set(range(row, row + box.nbytes))
        assert found == wanted, (info, given)
    return 1


def _check_seeds(seeds: range) -> int:
    forms = 0
    for seed in seeds:
        rng = random.Random(seed)
        info = _map(rng)
        parts = [tuple(np.array([rng.randrange(-3, 8) for _ in range(count)]) for count in (CTAS, THREADS)) for _ in info.dims]
        forms += _check(info, parts, np.arange(CTAS), np.arange(THREADS))
    return forms


def test_boxes_have_the_bytes_of_their_elements() -> None:
    assert _check_seeds(range(300)) > 1000


FAULTS = {
    "what is inside": ("_form", lambda info, steps, coordinates: tuple((0, count, 0) for count in info.counts)),
    "several forms": ("_same", lambda kept, left: None),
    "rows that follow on each other": ("_joined", lambda rows, nbytes: (rows[:1], nbytes * len(rows))),
}


@pytest.mark.parametrize("part", FAULTS)
def test_a_fault_is_found(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, *FAULTS[part])
    with pytest.raises(AssertionError):
        _check_seeds(range(100))


def test_a_map_of_another_rank_is_not_followed() -> None:
    part = np.zeros(1, np.int64), np.zeros(1, np.int64)
    with pytest.raises(Unread, match="another number of dimensions"):
        box_of(TensorMapInfo("u32", 0, (4, 4), (16,), (4, 4), (1, 1)), [part])
