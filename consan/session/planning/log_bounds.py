"""How many words the log of a launch has at most, by its text and its parameters (consan/ranges/words.py)."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Final

from consan.dataclass import dataclass
from consan.ranges import LaunchExtents, NotProven, Slice
from consan.ranges.words import most_words
from consan.session.modules.parameters import Asked
from consan.session.modules.prepared import LogShape, Prepared
from consan.session.planning.proofs import function_of

_MOST_KNOWN: Final = 256
_MOST_CTAS: Final = 1 << 20  # the walk has a number for each


@dataclass
class LogBounds:
    """The bounds of a session, by form and kernel, extents and the parameters that they follow from."""

    _slices: dict[tuple[int, int], Slice | None] = field(default_factory=dict)  # None: no launch of the kernel has a bound
    _known: dict[tuple[int, int, LaunchExtents, tuple[bytes, ...]], int] = field(default_factory=dict)

    def of(self, form: Prepared, shape: LogShape, asked: Asked) -> int:
        """The most words of a thread. 0: they are not bounded, or earlier launches say what they need. `asked`: reads its parameters."""
        kernel, grid, block, _ = shape
        compact = None if form.recorded is None else form.recorded.kernels[kernel].compact
        place = form.number, kernel
        if compact is None or not compact.in_nodes or self._slices.get(place, ...) is None:
            return 0
        if form.logs.full_once or shape in form.logs.lines or math.prod(grid) > _MOST_CTAS or (args := asked()) is None:
            return 0
        try:
            if (found := self._slices.get(place)) is None:
                found = self._slices[place] = Slice(function_of(form, form.entries[kernel]), compact.in_nodes)
            return self._of(found, place, LaunchExtents(grid, block), args)
        except NotProven as reason:
            if reason.never:
                self._slices[place] = None
            return 0

    def _of(self, found: Slice, place: tuple[int, int], extents: LaunchExtents, args: tuple[bytes, ...]) -> int:
        key = *place, extents, found.numbers(args)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            words = most_words(found, args, extents)
            key = *place, extents, found.numbers(args)  # it may have turned out that the number of a pointer is needed
            self._known[key] = words
        return max(1, self._known[key])  # 0: not known
