"""The recording of cp.async (ISA "cp.async"): its source and its size matter only where a write can meet it (seals.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.effects import WordValue
from consan.instrument.effects.makes import Makes
from consan.instrument.record.families.lowering import put
from consan.instrument.record.text.words import keys_of
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.copied_bytes import source_bytes
from consan.instrument.rewriting.emit import Snippet

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder


def add(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """A copy at its issue."""
    whole = work.event.first.total_bytes
    if kernel.facts.seals:
        put(kernel, work, made.without("source"), reads=WordValue(whole))
    else:
        put(kernel, work, made, reads=lambda: _size(kernel, work, whole))


def _size(kernel: FunctionRecorder, work: Work, whole: int) -> WordValue:
    """The bytes that a copy reads."""
    snippet = Snippet()
    size = source_bytes(work, whole, snippet)
    if size.isdecimal():
        return WordValue(int(size))
    word, code = kernel.open_block().unhashed([size], snippet, keys_of(work.instruction.operands, work.instruction.scope))
    kernel.pending += code
    return WordValue(0, word)
