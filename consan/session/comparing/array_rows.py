"""The bytes of arrays as accesses, for a comparison with those of launches (SEMANTICS 12, R-GM14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.concurrent_launches import RetainedFlag, Rows
from consan.checker.compiled.layouts import RETAINED
from consan.instrument.layouts.records import dtype

MOST_RUNS: Final = 1 << 16  # of one array
_MOST_BYTES: Final = 1 << 30  # of one row
HOST: Final = 1 << 63  # added to addresses of the host
ROWS: Final = np.dtype([*dtype(RETAINED).descr, ("device", "<u8")])


class Extents(Protocol):
    """The part of a NumPy array that says where its elements are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements in each dimension."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one to the next."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""


class TouchedBytes(Protocol):
    """The runs of bytes that an instruction touches (consan/ranges/footprint.py). Each is shorter than 4 GiB."""

    @property
    def form(self) -> Any:
        """The access in the text."""

    @property
    def certain(self) -> bool:
        """Whether all of them are touched."""

    @property
    def begin(self) -> npt.NDArray[np.int64]:
        """The first bytes."""

    @property
    def end(self) -> npt.NDArray[np.int64]:
        """The ends."""


_MOST_REMEMBERED: Final = 16
_Result = TypeVar("_Result")


class ByRows(Generic[_Result]):
    """Results that are made of accesses, each of them once. Launches that are alike have one array of accesses, which nobody changes.

    `few`: of so many the result is made again, so that small operations in each turn let nobody forget a large launch.
    """

    def __init__(self, few: int = -1) -> None:
        self._few = few
        self._made: list[tuple[Rows, Any, _Result]] = []  # those that were used last

    def of(self, rows: Rows, key: Any, make: Callable[[], _Result]) -> _Result:
        """The result for an array. `key`: what it depends on besides."""
        for at, (each, how, result) in enumerate(self._made):
            if each is rows and how == key:
                self._made.insert(0, self._made.pop(at))
                return result
        made = make()
        if len(rows) > self._few:
            self._made = [(rows, key, made), *self._made[: _MOST_REMEMBERED - 1]]
        return made


Placed = tuple[int, Extents]  # the address of the first element of an array, and the array


def rows_of(reads: Iterable[Placed], writes: Iterable[Placed]) -> Rows | None:
    """The accesses of an operation that reads and writes arrays. None: one of them has too many runs."""
    given = [(each, RetainedFlag.READS) for each in reads] + [(each, RetainedFlag.WRITES) for each in writes]
    found = [_rows(address, array, flag) for (address, array), flag in given if 0 not in array.shape]
    known = [rows for rows in found if rows is not None]
    if len(known) < len(found):
        return None
    return np.concatenate(known) if known else np.zeros(0, ROWS)


def _rows(address: int, array: Extents, flag: RetainedFlag) -> Rows | None:
    starts, nbytes = runs(array)
    if len(starts) > MOST_RUNS:
        return None
    rows = np.zeros(len(starts), ROWS)
    rows["address"] = starts.astype(np.uint64) + np.uint64(address)
    rows["device"] = rows["address"] & np.uint64(HOST - 1)
    rows["bytes"], rows["flags"] = nbytes, flag
    return rows


def runs(array: Extents) -> tuple[npt.NDArray[np.int64], int]:
    """The offsets of an array's runs of bytes from its first element, and the length of a run."""
    pairs = zip(array.strides, array.shape, strict=True)
    dimensions = sorted((abs(step), extent) for step, extent in pairs if extent > 1 and step)
    below = sum(step * (extent - 1) for step, extent in zip(array.strides, array.shape, strict=True) if step < 0)
    nbytes = array.itemsize
    while dimensions and dimensions[0][0] == nbytes:
        nbytes *= dimensions.pop(0)[1]
    starts = np.array([below], np.int64)
    for step, extent in dimensions:
        if len(starts) <= MOST_RUNS:
            starts = (starts[:, None] + np.arange(extent, dtype=np.int64) * step).ravel()
    return starts, nbytes


def span_of(rows: Rows | None) -> tuple[int, int]:
    """From the first byte to the last of accesses."""
    if rows is None or not len(rows):
        return 0, 0
    begin = rows["address"]
    return int(begin.min()), int((begin + rows["bytes"].astype(np.uint64)).max())


def is_inside(rows: Rows, address: int, nbytes: int) -> npt.NDArray[np.bool_]:
    """Which accesses begin in some bytes, by their places."""
    found: npt.NDArray[np.bool_] = (rows["address"] >= address) & (rows["address"] < address + nbytes)
    return found


def is_between(rows: Rows, begin: int, end: int) -> npt.NDArray[np.bool_]:
    """Which accesses touch bytes between two addresses."""
    found: npt.NDArray[np.bool_] = (rows["address"] < end) & (rows["address"] + rows["bytes"].astype(np.uint64) > begin)
    return found


def rows_between(reads: Iterable[tuple[int, int]], writes: Iterable[tuple[int, int]]) -> Rows:
    """The accesses of an operation that reads and writes ranges of bytes of the device."""
    given = [(each, RetainedFlag.READS) for each in reads] + [(each, RetainedFlag.WRITES) for each in writes]
    parts = [(begin, min(begin + _MOST_BYTES, end), flag) for (first, end), flag in given for begin in range(first, end, _MOST_BYTES)]
    rows = np.zeros(len(parts), ROWS)
    for row, (begin, end, flag) in zip(rows, parts, strict=True):
        row["address"] = row["device"] = begin
        row["bytes"], row["flags"] = end - begin, flag
    return rows


NO_ROWS: Final = rows_between((), ())


def rows_touched(touched: Sequence[TouchedBytes], begins: Sequence[int]) -> Rows:
    """The accesses of a launch by the bytes that its instructions touch. The site of each is the place of its instruction, from zero.

    `begins`: what is added to the bytes of each.
    """
    rows = np.zeros(sum(len(each.begin) for each in touched), ROWS)
    at = 0
    for number, (each, begin) in enumerate(zip(touched, begins, strict=True)):
        part = rows[at : at + len(each.begin)]
        at += len(part)
        part["address"] = part["device"] = each.begin + begin
        part["bytes"], part["site"] = each.end - each.begin, number
        kind = RetainedFlag.WRITES if each.form.writes else RetainedFlag.READS
        part["flags"] = kind | RetainedFlag.RUN | (RetainedFlag(0) if each.certain else RetainedFlag.POSSIBLE)
    return rows


def both_in(first: np.void, second: np.void) -> tuple[np.void, np.void]:
    """Two accesses that overlap, each from the first byte that is in both, if it is a run of many."""
    common = max(int(first["address"]), int(second["address"]))
    return _from(first, common), _from(second, common)


def _from(row: np.void, address: int) -> np.void:
    skipped = address - int(row["address"])
    if not skipped or not int(row["flags"]) & RetainedFlag.RUN:
        return row
    moved: np.void = row.copy()
    moved["address"] += np.uint64(skipped)
    moved["device"] += np.uint64(skipped)
    moved["bytes"] -= np.uint32(skipped)
    return moved
