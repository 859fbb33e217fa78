"""The word that differs where rows stored by `stmatrix` differ (ISA "stmatrix", as the fragments of "mma").

Lane L addresses row L % 8 of matrix L / 8. Lanes 4r to 4r + 3 hold the words of row r. With `.trans`, lane 4c + r / 2 holds element c of
row r, in the half given by the parity of r; of .m16n8 it
holds two bytes of each of these rows, with .trans always.

The word of a row is a sum of its words, each times a power of FACTOR, as `Words.folded` has it. So each lane multiplies its part, and lanes
add up parts. In a step of the sum, a lane keeps half of its values and sends the others to a lane at some distance, which keeps those.
In the end a lane has one value; one more shuffle brings it to the lane that addresses the row.

`.aligned` needs all lanes, but the hardware may run lanes one after another, and recording must not wait. So lanes exchange values only if
all are active; otherwise different threads count as storing different values.
"""

from __future__ import annotations

from consan.instrument.isa import is_of_bytes, transposes
from consan.instrument.ptx import Operand, Vector
from consan.instrument.record.text.text import FACTOR
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Snippet, narrow_guard, value_words

_NONE = "0"  # in place of the value of a matrix that there is not


def row_fold(work: Work, own: str, snippet: Snippet) -> str:
    """A register with the word of the row that a lane addresses. `own`: a register that differs between threads."""
    source = operand_of(work, "src")
    elements: list[Operand] = list(source.elements) if isinstance(source, Vector) else [source]  # type: ignore[list-item]
    matrices = value_words(elements, 4, snippet, work.instruction.scope)
    if is_of_bytes(work.instruction):
        matrices = _rows_of_bytes(matrices, snippet)
    lane, row, of_row, result = snippet.registers("b32", 4)
    whole = snippet.register("pred")
    snippet.add(f"activemask.b32 {row}; setp.eq.u32 {whole}, {row}, -1;")
    snippet.add(f"mov.u32 {lane}, %laneid; and.b32 {row}, {lane}, 7; shr.u32 {of_row}, {lane}, 3;")
    guard = narrow_guard(snippet, work.instruction, whole)
    if transposes(work.instruction):
        values = _halves(matrices, lane, snippet)
        value = _summed(values, (4, 8, 16), lane, guard, snippet)
        holder = "and.b32 {0}, {1}, 1; mad.lo.u32 {2}, {2}, 2, {0}; shr.u32 {0}, {1}, 1; mad.lo.u32 {0}, {2}, 4, {0};"
    else:
        value = _summed(_products(matrices, _weight(lane, (1, 2), snippet), snippet), (1, 2), lane, guard, snippet)
        holder = "mad.lo.u32 {0}, {1}, 4, {2};"
    snippet.add(holder.format(result, row, of_row))
    snippet.add(f"{guard}shfl.sync.idx.b32 {result}, {value}, {result}, 31, -1; selp.b32 {result}, {result}, {own}, {whole};")
    return result


def _rows_of_bytes(matrices: list[str], snippet: Snippet) -> list[str]:
    """The registers of .m16n8 with the bytes of each row in a half of its own: bytes 0 and 2, then 1 and 3."""
    found = snippet.registers("b32", len(matrices))
    snippet.add(" ".join(f"prmt.b32 {mine}, {given}, 0, 0x3120;" for mine, given in zip(found, matrices, strict=True)))
    return found


def _weight(lane: str, bits: tuple[int, int], snippet: Snippet) -> str:
    """FACTOR to the power of 3 less the number of a word, whose two bits are at these places of the lane's number."""
    (weight, other), chosen = snippet.registers("b32", 2), snippet.register("pred")
    snippet.add(f"mov.u32 {weight}, 1;")
    for bit, power in zip(bits, (1, 2), strict=True):
        snippet.add(f"and.b32 {other}, {lane}, {bit}; setp.eq.u32 {chosen}, {other}, 0;")
        snippet.add(f"@{chosen} mul.lo.u32 {weight}, {weight}, {pow(FACTOR, power, 1 << 32):#x};")
    return weight


def _products(values: list[str], weight: str, snippet: Snippet) -> list[str]:
    found = snippet.registers("b32", len(values))
    snippet.add(" ".join(f"mul.lo.u32 {product}, {value}, {weight};" for product, value in zip(found, values, strict=True)))
    return found


def _halves(matrices: list[str], lane: str, snippet: Snippet) -> list[str]:
    """With `.trans`: for each matrix the parts of the two rows whose elements a lane holds."""
    weight, shift, found = _weight(lane, (8, 16), snippet), snippet.register("b32"), list[str]()
    snippet.add(f"and.b32 {shift}, {lane}, 4; shl.b32 {shift}, {shift}, 2; shl.b32 {weight}, {weight}, {shift};")
    for matrix in matrices:
        low, high = snippet.registers("b32", 2)
        snippet.add(f"and.b32 {low}, {matrix}, 0xFFFF; shr.u32 {high}, {matrix}, 16;")
        found += _products([low, high], weight, snippet)
    return found


def _summed(values: list[str], distances: tuple[int, ...], lane: str, guard: str, snippet: Snippet) -> str:
    """The value that a lane has in the end: the bits of its number at the distances say which, the lowest first."""
    values += [_NONE] * ((1 << len(distances)) - len(values))
    upper, bit = snippet.register("pred"), snippet.register("b32")
    for distance in distances:
        snippet.add(f"and.b32 {bit}, {lane}, {distance}; setp.ne.u32 {upper}, {bit}, 0;")
        values = [_step(one, other, distance, upper, guard, snippet) for one, other in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _step(one: str, other: str, distance: int, upper: str, guard: str, snippet: Snippet) -> str:
    if one == other == _NONE:
        return _NONE
    kept, sent = snippet.registers("b32", 2)
    snippet.add(f"selp.b32 {kept}, {other}, {one}, {upper}; selp.b32 {sent}, {one}, {other}, {upper};")
    snippet.add(f"{guard}shfl.sync.bfly.b32 {sent}, {sent}, {distance}, 31, -1; add.u32 {kept}, {kept}, {sent};")
    return kept
