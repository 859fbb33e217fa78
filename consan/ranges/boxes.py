"""The bytes of the box that a tensor copy moves (ISA "Tensors", "cp.async.bulk.tensor"; driver API, cuTensorMapEncodeTiled).

The map is a parameter of the launch: consan/tensormap decodes it. Its address is a pointer like others. Elements that lie outside of the
tensor are not accessed. A box at its edge has another form than one inside: CTAs and threads whose boxes differ in it are taken apart.

Not proven: im2col and interleaved maps, whose elements lie in another order, gather4 and scatter4, whose rows follow from coordinates of
their own, and maps that the kernel makes or loads.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.ranges.values import Fork, Signed
from consan.tensormap.description import TensorMapInfo
from consan.tensormap.encoding import TensorMapError, decode

_MOST_BOXES = 1 << 20  # CTAs, times threads
Part = tuple[Signed, Signed]  # numbers of CTAs, and of threads
Form = tuple[tuple[int, int, int], ...]  # of each dimension: elements to leave out, elements, and how far the first is from its coordinate


class Unread(Exception):  # noqa: N818
    """A tensor map says nothing that is followed: why."""


@dataclass(frozen=True)
class TensorBox:
    """The ranges of bytes of boxes of one form, and where they begin: sums of a number of the CTA and one of the thread."""

    of_cta: Signed
    of_thread: Signed
    rows: Signed
    nbytes: int
    element: int = 0


@functools.lru_cache(maxsize=64)
def tiled_map(data: bytes) -> TensorMapInfo:
    """The fields of a map. Raises `Unread`."""
    try:
        info = decode(data)
    except TensorMapError as error:
        raise Unread(str(error)) from None
    if info.im2col:
        raise Unread("im2col copies are not followed")
    if info.interleave:
        raise Unread("interleaved tensor maps are not followed")
    if info.packed > 1:
        raise Unread("tensor maps of packed elements are not followed")
    return info


def box_of(info: TensorMapInfo, coordinates: Sequence[Part]) -> TensorBox | None:
    """The bytes of a box, added to the address of the map. None: it is outside. Raises `Fork` where boxes have several forms."""
    if len(coordinates) != info.rank:
        raise Unread("its tensor map has another number of dimensions")
    steps = (1, *info.element_strides[1:])
    strides = (info.element_bytes, *info.strides)
    form = _form(info, steps, coordinates)
    if any(count <= 0 for _, count, _ in form):
        return None
    rows = np.zeros(1, np.int64)
    for (_, count, _), step, stride in itertools.islice(zip(form, steps, strides, strict=True), 1, None):
        rows = (rows[:, None] + np.arange(count) * step * stride).ravel()
    of_cta, of_thread = (sum((each[part] * stride for each, stride in zip(coordinates, strides, strict=True)), start=0) for part in (0, 1))
    first = sum(distance * stride for (_, _, distance), stride in zip(form, strides, strict=True))
    rows, nbytes = _joined(np.sort(rows), form[0][1] * info.element_bytes)
    return TensorBox(np.atleast_1d(of_cta + first), np.atleast_1d(of_thread), rows, nbytes, info.element_bytes)


def size_of(size: Part) -> int:
    """The bytes of a bulk copy. Raises `Fork` where CTAs or threads have several."""
    total = size[0][:, None] + size[1]
    _same(total, np.zeros_like(total))
    return int(total.flat[0])


def _form(info: TensorMapInfo, steps: Sequence[int], coordinates: Sequence[Part]) -> Form:
    """The part of the box inside the tensor, along each dimension. Raises `Fork` if it is not the same for all."""
    found = []
    for (of_cta, of_thread), count, step, extent in zip(coordinates, info.counts, steps, info.dims, strict=True):
        least, most = of_cta.min() + of_thread.min(), of_cta.max() + of_thread.max() + (count - 1) * step
        if least >= 0 and most < extent:
            found.append((0, count, 0))  # all are inside
            continue
        if of_cta.size * of_thread.size > _MOST_BOXES:
            raise Unread("its boxes are too many")
        first = of_cta[:, None] + of_thread
        left = np.clip(-(first // step), 0, None)
        right = np.clip(-(-(extent - first) // step), None, count)
        kept = np.maximum(right - left, 0)
        _same(kept, left * step)
        found.append((int(left.flat[0]), int(kept.flat[0]), int(left.flat[0]) * step))
    return tuple(found)


def _same(kept: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> None:
    """Raise `Fork` if boxes of several CTAs or threads differ along a dimension. Those that are outside are alike."""
    forms = np.where(kept > 0, kept + (left << 32), 0)
    if (forms == forms.flat[0]).all():
        return
    for numbers, of_threads in ((forms, False), (forms.T, True)):
        kinds, number = np.unique(numbers, axis=0, return_inverse=True)
        if len(kinds) > 1:
            raise Fork([number.ravel() == kind for kind in range(len(kinds))], of_threads=of_threads)


def _joined(rows: Signed, nbytes: int) -> tuple[Signed, int]:
    """The same bytes as one range, if the rows follow on each other."""
    if len(rows) > 1 and (np.diff(rows) == nbytes).all():
        return rows[:1], nbytes * len(rows)
    return rows, nbytes
