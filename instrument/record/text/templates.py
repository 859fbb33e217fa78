"""Templates: what the words of a block mean. Written by the pass, read by the checker (consan/checker/source/basis/log.hpp).

Word 0 of a block is its number, from 1 on. The others are those that its events name (instrument/effects).
An event that has a guard word, or an address word, with all bits set did not happen.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.effects import LANES, Effect
from consan.instrument.effects.model import ROW

END = 0xFFFFFFFF  # in place of a block's number: the thread has exited
STOP = 0xFFFFFFFE  # the thread waits at the last event of the block before
LEFT = 0xC0000000  # added to a line of the PTX: there the thread has left, because the host stopped the launch
WORD_BYTES = 4
LINE_BYTES = LANES * WORD_BYTES  # one word of each lane of a warp


@dataclass
class Template:
    """A block: its events in order, and the number of its words."""

    number: int
    words: int = 1
    events: list[Effect] = field(default_factory=list)


EVENT_DTYPE = np.dtype([(name, "<i4") for name in ROW])
BLOCK_DTYPE = np.dtype([("first", "<i4"), ("events", "<i4"), ("words", "<i4")])


def tables(templates: list[Template]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """The blocks, indexed by number (0 is unused), and the events of all of them."""
    events = [event for template in templates for event in template.events]
    blocks = np.zeros(len(templates) + 1, BLOCK_DTYPE)
    first = 0
    for template in templates:
        blocks[template.number] = (first, len(template.events), template.words)
        first += len(template.events)
    rows = np.array([event.numbers() for event in events], np.int64).astype("<i4")  # numbers beyond 31 bits become negative
    return blocks, rows.view(EVENT_DTYPE).reshape(-1)
