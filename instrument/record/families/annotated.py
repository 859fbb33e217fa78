"""The recording of `consan_release` and `consan_acquire`: a strong access to a word that no instruction names.

A release is a read-modify-write of that word, so that an acquire takes all releases before it; an acquire reads it. There are no values:
one reading of the clock tells the order. The checker takes the address for another place than the bytes there (flags.hpp).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from consan.instrument.record.analyses import clusters
from consan.instrument.record.text import text
from consan.instrument.record.text.orders import order_of
from consan.instrument.record.text.readings import DRAW, LOOK, find_clock, mark_shared, read_first
from consan.instrument.record.text.templates import WORD_BYTES
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, wide_address

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_MARK = 0x40000000  # in the upper half of the address
_OPERATION = 13  # FlagOrder::MARK
_WORDS = 3  # the address, a reading


def words_of(kernel: FunctionRecorder, work: Work) -> Mapping[str, Any]:
    """Store the words of a release or an acquire; returns the fields of its events. Regions have no event (record/facts.py)."""
    address, releases = operand_of(work, "addr"), work.event.releases
    if address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    block, snippet = kernel.open_block(), Snippet()
    first, stored, copies = block.reserve(_WORDS)
    low, high, upper = snippet.register("b32"), snippet.register("b32"), snippet.register("b32")
    wide = wide_address(snippet, address, work.instruction.scope)
    snippet.add(f"mov.b64 {{{low}, {high}}}, {wide};")
    module = kernel.context.module
    mark_shared(snippet, wide, low, high, clusters.window(module))
    snippet.add(f"or.b32 {upper}, {high}, {_MARK};")
    for place, register in enumerate((low, upper)):
        snippet.add(text.store(stored + place, register).strip())
    find_clock(snippet, low)
    read_first(snippet, stored + _WORDS - 1, DRAW if releases else LOOK)
    kernel.pending += copies if kernel.variant.on_host else snippet.text()
    return {
        "site": kernel.site_of(work.instruction), "words": first, "bytes": WORD_BYTES, "element": WORD_BYTES, "operation": _OPERATION,
        "order": order_of(work.event), "reads": not releases, "writes": releases, "adds": releases,
    }  # fmt: skip
