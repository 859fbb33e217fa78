"""The bytes of global memory that a launch touches, by its text, its parameters, its grid and its block: no log is needed.

As a proof does, a footprint serves all launches that are equal but for the numbers of their pointers: its ranges are added to these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.ranges.accesses import SpreadAccess
from consan.ranges.forms import AccessForm, NotProven
from consan.ranges.overlaps import united
from consan.ranges.proof import paths_of
from consan.ranges.slices import Slice
from consan.ranges.walk import LaunchExtents

Numbers = npt.NDArray[np.int64]
MOST_RUNS: Final = 1 << 20  # of bytes, of one access in all CTAs


@dataclass(frozen=True, eq=False)
class Touched:
    """The runs of bytes that an instruction touches, apart and in order. `certain`: all of them are touched, not only some, and by no
    operation that may meet one of its kind.

    `base`: the pointer that they are added to; None: they are addresses.
    """

    form: AccessForm
    certain: bool
    base: int | None
    begin: Numbers
    end: Numbers


def footprint(kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents) -> tuple[Touched, ...]:
    """All bytes that a launch touches. Raises `NotProven`."""
    while (paths := paths_of(kernel, parameters, shape, {})) is None:
        pass  # a pointer is a number from now on
    stretches = {id(each.accesses): each for path in paths for each in path.stretches}.values()
    return tuple(_touched(access for stretch in stretches for access in stretch.accesses if len(access.threads)))


def _touched(accesses: Iterable[SpreadAccess]) -> Iterator[Touched]:
    """Those of each instruction."""
    found: dict[tuple[int, bool, int | None], list[SpreadAccess]] = {}
    for access in accesses:
        assert access.form is not None
        certain = access.certain and not (access.form.strong or access.form.together is not None)
        found.setdefault((id(access.form), certain, access.base), []).append(access)
    for (_, certain, base), same in found.items():
        begin, end = _in_order(*(np.concatenate(column) for column in zip(*map(_runs, same), strict=True)))
        assert same[0].form is not None
        yield Touched(same[0].form, certain, base, begin, end)


def _runs(access: SpreadAccess) -> tuple[Numbers, Numbers]:
    begin, end = _in_order(access.of_thread, access.of_thread + access.nbytes)
    ctas = np.unique(access.of_cta)
    if len(ctas) * len(begin) > MOST_RUNS:
        raise NotProven("its accesses have too many ranges")
    return _in_order((ctas[:, None] + begin).ravel(), (ctas[:, None] + end).ravel())


def _in_order(begin: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(begin, kind="stable")
    return united(begin[order], end[order])
