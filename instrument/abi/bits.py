"""The packed words of the shadow, one table each: the fields from the lowest bit up, each with its width and its meaning.

In C++ (header.py), a field in capitals is a mask, of the half of the word that it lies in. A field in small letters has an accessor: field
`site` of word `record` is read by `record_site(word)`. Its place in its half is RECORD_SITE_SHIFT, its mask RECORD_SITE_MASK.
A width is a number of bits, or the name of one that depends on the variant (variant.py). `*`: the rest of the word. `-N`: a signed number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from consan.dataclass import dataclass
from consan.instrument.abi.variant import Variant

_PLAIN = Variant()


@dataclass(frozen=True)
class Bits:
    """A field of a word of one variant."""

    name: str
    at: int
    width: int
    signed: bool
    meaning: str

    @property
    def mask(self) -> int:
        """A mask of the width, at bit 0."""
        return (1 << self.width) - 1

    def fits(self, value: int) -> bool:
        """Whether the field can hold a value."""
        return -(self.mask // 2 + 1) <= value <= self.mask // 2 if self.signed else 0 <= value <= self.mask


@dataclass(frozen=True)
class Word:
    """A packed word of 32 or 64 bits."""

    name: str
    size: int
    meaning: str
    rows: tuple[tuple[str, str, str], ...]  # field, width, meaning

    def fields(self, variant: Variant = _PLAIN) -> Iterator[Bits]:
        """The fields, from the lowest bit up."""
        at = 0
        for name, text, meaning in self.rows:
            width = variant.bits[text] if text.isidentifier() else self.size - at if text == "*" else abs(int(text))
            yield Bits(name, at, width, text.startswith("-"), meaning)
            at += width
        if at > self.size:
            raise ValueError(f"{self.name}: {at} bits")

    def pack(self, values: Mapping[str, int], variant: Variant = _PLAIN) -> int:
        """The word with these fields; the others are 0."""
        known = {field.name: field for field in self.fields(variant)}
        for name, value in values.items():
            if not known[name].fits(value):
                raise ValueError(f"{self.name}.{name} has no {known[name].width} bits for {value}")
        return sum((value & known[name].mask) << known[name].at for name, value in values.items())

    def unpack(self, word: int, variant: Variant = _PLAIN) -> dict[str, int]:
        """All fields of a word."""
        values = {}
        for field in self.fields(variant):
            value = word >> field.at & field.mask
            values[field.name] = value if field.fits(value) else value - field.mask - 1
        return values


def _word(name: str, size: int, meaning: str, table: str) -> Word:
    first, width, meanings = zip(*(line.split(None, 2) for line in table.strip().splitlines()), strict=True)
    return Word(name, size, meaning, tuple(zip(first, width, meanings, strict=True)))


RECORD = _word(
    "record",
    64,
    "the last write of a granule of shared memory",
    """
    LOW_PAYLOAD  14  of a store: a hash of the value; of an atomic or strong store: its width and CTA_SCOPE; with HIGH_ASYNC: see LOW_TYPE
    LOW_MARKER    1  an uninitialised read, and no write; with HIGH_ASYNC: the granule belongs to an mbarrier (payload: its number)
    LOW_ATOMIC    1  an atomic or a strong store; with HIGH_ASYNC: a cp.async that completes with a phase (payload: mbarrier and phase)
    site         16  number of the instruction
    HIGH_OLD      1  written so long ago that it is ordered before everything
    HIGH_ASYNC    1  a cp.async (payload: its group), or what LOW_MARKER and LOW_ATOMIC say
    thread  THREAD_BITS       number in the CTA; in clusters: through all CTAs
    epoch   WRITE_EPOCH_BITS  of the writing warp, its lowest bits
    """,
)
ENTRY = _word(
    "entry",
    32,
    "the last read of a granule by a warp",
    """
    lane           5  that read last
    ENTRY_SEVERAL  1  other lanes read in the same epoch
    ENTRY_ATOMIC   1  an atomic, or a strong load
    site          12  number of the instruction; the highest number stands for all above
    ENTRY_LOAD     1  with ENTRY_ATOMIC: a strong load
    epoch  READ_EPOCH_BITS  of the reading warp, its lowest bits
    """,
)
BLOCK = _word(
    "block",
    32,
    "the last read or write of a block by a warp, in the coarse table",
    """
    lane          5  of the last access
    BLOCK_ASYNC   1  a cp.async
    epoch        26  of the warp
    """,
)
STATE = _word(
    "state",
    64,
    "an mbarrier as the shadow keeps it",
    """
    tx       -22  bytes still to come
    pending   20  arrivals that the phase still needs
    phase     22  counted through all CTAs that the slot serves; the first one of an mbarrier is even
    """,
)
POINT = _word(
    "point",
    64,
    "where a lane is: at a warp-synchronous instruction, or past the joins of some (`what` is JOINED)",
    """
    members  32  lanes that must come together; or the joins that the lane has passed
    site     16  number of the instruction
    what      8  ALIGNED, WHOLE, JOINED, or the number of an opcode: two of one opcode with the same mask are one point
    join      8  number of the join that every path from here comes to; 0: none
    """,
)
WAIT = _word(
    "wait",
    64,
    "what a registered thread waits for",
    """
    index   16  number of the mbarrier or barrier
    kind    16  WaitKind
    number  32  phase, generation, or whole-CTA barriers that the thread has passed
    """,
)
SOURCE = _word(
    "source",
    64,
    "a cp.async as its thread keeps it, beside the address that it reads",
    """
    bytes   5  that it reads
    group  30  the lowest bits of its number
    free    5  always 0
    site   24  number of the instruction
    """,
)
SITES = _word(
    "sites",
    32,
    "the site of a bulk copy, as an argument of hooks",
    """
    site    16  number of the instruction
    source  16  the first of the sites that its source place has (an unrolled loop has several)
    """,
)
RESULT_SITE = _word(
    "result_site",
    32,
    "the site of a bulk copy to global memory, as an argument of hooks",
    """
    site   16  number of the instruction
    flags  16  ResultFlags
    """,
)
ADDRESS = _word(
    "address",
    32,
    "a shared address in clusters, as an argument of hooks",
    """
    inside  24  the address in the CTA of rank 0
    rank     8  of the CTA that has the memory
    """,
)
KEY = _word(
    "key",
    64,
    "what findings are merged by",
    """
    second  18  the higher number of the two sites; of a waiter: what it waits for
    first   18  the lower one
    reason   8  Reason
    flags    2  FindingFlags, the lowest
    kind     5  Kind
    module  12  number of the module
    used     1  the entry of the table is taken
    """,
)
WORDS = (RECORD, ENTRY, BLOCK, STATE, POINT, WAIT, SOURCE, SITES, RESULT_SITE, ADDRESS, KEY)
