"""The accesses of an instruction, by the values of its registers: for the threads of each CTA that make it.

The leader of a warp is one of its lanes, nobody knows which, and the same one each time (ISA "elect.sync"). All lanes are taken as the
leader on one path, and as the others on another one. Bytes that all lanes would access as the leader are accessed once, by a thread of its
own. So is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.ranges.boxes import Part, TensorBox, Unread, box_of, size_of, tiled_map
from consan.ranges.forms import AccessForm, NotProven, ParameterWord, Source, Together
from consan.ranges.values import Fork, Signed, SpreadValue, Unknown, Valued, exact

Numbers = npt.NDArray[np.int64]
_WIDE: Final = 64
_COORDINATE: Final = 32
_LANES: Final = 32
_ONE_ROW: Final = np.zeros(1, np.int64)
_LEADERS: Final = -1  # and below: leaders of warps
_COPIES: Final = -(1 << 11)  # and below: copies


@dataclass(frozen=True)
class SpreadAccess:
    """An access of some threads of each CTA of a path: the sum of both parts is the address, or what is added to the pointer `base`.

    `own`: a thread may meet its own writes. `iterations`: of a loop; each CTA has as many numbers, if not one for all.
    `form`: the access in the text; `certain`: the threads make it. `number`: of single threads, in each CTA. `together`: it may
    meet others of that kind.
    """

    threads: Numbers
    of_cta: Signed
    of_thread: Signed
    nbytes: int
    writes: bool
    own: bool
    base: int | None = None
    iterations: int = 1
    form: AccessForm | None = None
    certain: bool = True
    number: int = 0
    together: Together | None = None

    @property
    def repeats(self) -> bool:
        """Whether it is another write each time."""
        return self.form is not None and self.form.repeats

    def of_ctas(self, places: npt.NDArray[np.intp]) -> Iterator[SpreadAccess]:
        """The access in some of the CTAs, for each iteration; where all iterations are alike, for as many as matter."""
        if self.of_cta.size == 1:
            yield from (replace(self, iterations=1) for _ in range(min(self.iterations, 2) if self.repeats else 1))
            return
        for numbers in self.of_cta.reshape(-1, self.iterations)[places].T:
            yield replace(self, of_cta=numbers, iterations=1)


@dataclass(frozen=True)
class TakingThreads:
    """The threads of a path that make an access. `leads`: as leaders of their warps, or as the others; None: that does not matter.

    `all`: of the path; `places`: where those that make it are among them.
    """

    all: Numbers
    places: npt.NDArray[np.intp]
    leads: bool | None

    @property
    def numbers(self) -> Numbers:
        """Their numbers."""
        return self.all[self.places]

    @property
    def count(self) -> int:
        """How many threads they stand for: one of the lanes leads, if there are several."""
        warps = len(np.unique(self.numbers // _LANES))
        several = len(self.places) > warps
        if self.leads is None or not (several or self.leads):
            return len(self.places)
        return warps * several if self.leads else len(self.places) - warps

    def alike(self, parts: list[Signed]) -> npt.NDArray[np.intp] | None:
        """The first of each warp, if the lanes of each are alike. `parts`: of the path's threads, or one for all."""
        warps, first, number = np.unique(self.numbers // _LANES, return_index=True, return_inverse=True)
        if len(warps) == len(self.places):
            return None
        same = all(part.size == 1 or (part[self.places] == part[self.places][first][number]).all() for part in parts)
        return first if same else None

    def led(self, parts: list[Signed]) -> tuple[TakingThreads, Numbers]:
        """The threads that are compared one by one, and their numbers. `parts`: the values that the bytes of an access follow from."""
        first = self.alike(parts) if self.leads else None
        if first is None:
            return self, self.numbers
        leaders = replace(self, places=self.places[first])
        return leaders, _LEADERS - leaders.numbers // _LANES

    def forked(self, fork: Fork) -> Fork:
        """A fork of these threads as one of all threads of the path. The others, and lanes like one of these, go with one of them."""
        if not fork.of_threads:
            return fork
        warps = self.all // _LANES
        at = np.searchsorted(self.numbers, self.all)
        at = np.minimum(at, len(self.places) - 1)
        by_warp = np.minimum(np.searchsorted(self.numbers // _LANES, warps), len(self.places) - 1)
        at = np.where(self.numbers[at] == self.all, at, by_warp)
        return Fork([mask[at] for mask in fork.sets], of_threads=True)


def of_all_lanes(threads: Numbers, part: npt.NDArray[np.uint64], block: int) -> bool:
    """Whether threads are whole warps, and a part of a value is one number in each of them. `block`: the threads of the CTA."""
    warps, first, number, count = np.unique(threads // _LANES, return_index=True, return_inverse=True, return_counts=True)
    whole = (count == np.minimum(_LANES, block - warps * _LANES)).all()
    return bool(whole and (part.size == 1 or (part == part[first][number]).all()))


@dataclass(frozen=True)
class Operands:
    """The inputs of an access: the values of its operands, the parameters with the tensor maps, and the pointers among them."""

    value: Callable[[Source], SpreadValue | None]
    parameters: Sequence[bytes]
    place: Callable[[ParameterWord], SpreadValue]

    def known(self, source: Source) -> SpreadValue:
        """A value. Raises `NotProven`."""
        value = self.value(source)
        if value is None:
            raise NotProven("an address is no sum of parts")
        return value

    def number(self, source: Source, *, signed: bool) -> Part:
        """The parts of a coordinate or a size. Raises `NotProven`."""
        value = self.known(source)
        if value.base is not None:
            raise Valued([value.base])
        return _exact(value, _COORDINATE, signed=signed)


def _exact(value: SpreadValue, bits: int, *, signed: bool) -> Part:
    try:
        return exact(value.on(None), bits, signed=signed)
    except Unknown:
        raise NotProven("an address wraps") from None


def accesses(form: AccessForm, threads: TakingThreads, operands: Operands, *, certain: bool) -> list[SpreadAccess]:
    """The accesses of some threads; none of a copy of nothing. Raises `NotProven`, or `Fork` where sets of CTAs or threads have some."""
    if not len(threads.places):
        return []
    base, parts = _parts(form, operands)
    leading, numbers = threads.led([of_thread for _, of_thread in parts])
    parts = [(of_cta, of_thread if of_thread.size == 1 else of_thread[leading.places]) for of_cta, of_thread in parts]
    try:
        box = _box(form, parts, operands)
    except Fork as fork:
        raise leading.forked(fork) from None
    except Unread as why:
        raise NotProven(str(why)) from None
    if box is None:
        return []
    of_cta, of_thread = box.of_cta + base.of_cta.view(np.int64), box.of_thread
    if form.asynchronous:
        numbers = _COPIES - numbers
    if len(box.rows) > 1:
        of_thread = (np.broadcast_to(of_thread, numbers.shape)[:, None] + box.rows).ravel()
        numbers = np.repeat(numbers, len(box.rows))
    certain = certain and (threads.leads is None or leading is not threads)
    together = form.together
    if together is not None and not together.element:
        together = replace(together, element=box.element)
    bytes_ = numbers, of_cta, of_thread, box.nbytes
    return [SpreadAccess(*bytes_, form.writes, form.own, base.base, 1, form, certain, threads.count * len(box.rows), together)]


def _parts(form: AccessForm, operands: Operands) -> tuple[SpreadValue, list[Part]]:
    """The pointer that an access is added to, and the numbers that it follows from: an address, and a size; or coordinates."""
    if form.box is not None:
        return operands.place(form.box.address), [operands.number(each, signed=True) for each in form.box.coordinates]
    address = operands.known(form.base)
    size = () if form.size is None else (operands.number(form.size, signed=False),)
    return SpreadValue.same(0).on(address.base), [_exact(address, _WIDE, signed=True), *size]


def _box(form: AccessForm, parts: Sequence[Part], operands: Operands) -> TensorBox | None:
    """The bytes of an access: of a tensor copy those of its box, of others one range."""
    if form.box is not None:
        address, rest = form.box.address, form.box.rest
        return box_of(tiled_map(operands.parameters[address.parameter][address.begin : rest.end]), parts)
    (of_cta, of_thread), nbytes = parts[0], form.nbytes if form.size is None else size_of(parts[1])
    return TensorBox(of_cta + form.offset, of_thread, _ONE_ROW, nbytes) if nbytes else None
