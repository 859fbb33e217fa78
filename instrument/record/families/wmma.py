"""The recording of `wmma.load` and `wmma.store` (ISA "Matrix Storage for WMMA"): a warp accesses the whole of a matrix in memory.

Which lane touches which element is unspecified. Each lane is given equal shares of up to 16 bytes of the rows (or columns): so each byte of
the matrix is accessed once, and no other byte. Between warps that is exact. Within a warp a lane may in fact touch what another one is
given here. Stored values are not compared, because a lane does not know which of them it stores where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consan.instrument.effects import LANES, WordValue
from consan.instrument.effects.kinds import SharedAccess
from consan.instrument.effects.makes import Makes
from consan.instrument.isa import MemoryAccess
from consan.instrument.isa.tiles import Tile, tile_of
from consan.instrument.record.analyses import clusters
from consan.instrument.record.text import orders
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, shared_address, wide_address, word

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_WIDEST = 16  # bytes of a share
_NOWHERE = "0xffffffff"  # in place of an address: the lane accesses nothing


def _share(tile: Tile) -> int:
    """Bytes that a lane accesses at once."""
    return min(_WIDEST, _line_bytes(tile))


def _shares(tile: Tile) -> int:
    """How many shares a matrix has."""
    return tile.lines * _line_bytes(tile) // _share(tile)


def _line_bytes(tile: Tile) -> int:
    return tile.elements * tile.bits // 8


def add(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """The accesses of a warp to a matrix, in shared or in global memory."""
    access, tile = work.event.first, tile_of(work.row.modifiers(work.instruction.parts))
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    in_shared = issubclass(made.kind, SharedAccess)
    if access.may_be_shared if in_shared else access.may_be_global:
        for first in range(0, _shares(tile), LANES):
            (_add_shared if in_shared else _add_global)(kernel, work, made.kind, access, tile, first)


def _add_shared(kernel: FunctionRecorder, work: Work, kind: Any, access: MemoryAccess, tile: Tile, first: int) -> None:
    block, snippet, window = kernel.open_block(), Snippet(), clusters.window(kernel.context.module)
    executes, address = _executes(snippet, work, tile, first), snippet.register("b32")
    assert access.address is not None
    if access.is_generic:
        wide, inside = wide_address(snippet, access.address, work.instruction.scope), snippet.register("pred")
        snippet.add(f"isspacep.{window} {inside}, {wide}; and.pred {executes}, {executes}, {inside};")
        snippet.add(f"cvta.to.{window}.u64 {wide}, {wide}; cvt.u32.u64 {address}, {wide};")
    else:
        snippet.add(f"mov.b32 {address}, {shared_address(snippet, access.address, work.instruction.scope)};")
    snippet.add(f"add.u32 {address}, {address}, {_distance(snippet, work, tile, first)};")
    snippet.add(f"selp.b32 {address}, {address}, {_NOWHERE}, {executes};")
    place, code = block.hashed(address, snippet)
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, access.access, access.space, _share(tile))
    share = _share(tile)
    block.add(kind(site=site.number, at=WordValue(0, place), bytes=share, element=share, **orders.reach_of(work, access)))


def _add_global(kernel: FunctionRecorder, work: Work, kind: Any, access: MemoryAccess, tile: Tile, first: int) -> None:
    block, snippet, scope = kernel.open_block(), Snippet(), work.instruction.scope
    executes = _executes(snippet, work, tile, first)
    assert access.address is not None
    wide = wide_address(snippet, access.address, scope, "global" if access.in_global else "")
    if access.is_generic:
        outside = snippet.register("pred")
        snippet.add(f"isspacep.global {outside}, {wide}; and.pred {executes}, {executes}, {outside};")
    more, (low, high, guard) = snippet.register("b64"), snippet.registers("b32", 3)
    snippet.add(f"cvt.u64.u32 {more}, {_distance(snippet, work, tile, first)}; add.u64 {wide}, {wide}, {more};")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {wide}; selp.b32 {guard}, 0, {_NOWHERE}, {executes};")
    place, code = block.unhashed([low, high, guard], snippet)
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, access.access, access.space, _share(tile))
    block.add(kind(site=site.number, guard=place + 2, address=place, bytes=_share(tile), element=_share(tile)))


def _executes(snippet: Snippet, work: Work, tile: Tile, first: int) -> str:
    """A predicate: the instruction executes, and the lane has a share."""
    lane, found, predicate = snippet.register("b32"), snippet.register("pred"), work.instruction.predicate
    snippet.add(f"mov.u32 {lane}, %laneid; setp.lt.u32 {found}, {lane}, {_shares(tile) - first};")
    if predicate is not None:
        own = snippet.register("pred")
        snippet.add(f"not.pred {own}, {predicate.register};" if predicate.negated else f"mov.pred {own}, {predicate.register};")
        snippet.add(f"and.pred {found}, {found}, {own};")
    return found


def _distance(snippet: Snippet, work: Work, tile: Tile, first: int) -> str:
    """The distance of a lane's share from the beginning of the matrix, in bytes."""
    line, column, stride = snippet.registers("b32", 3)
    in_line = _line_bytes(tile) // _share(tile)
    given = operand_of(work, "stride")
    elements = word(given, snippet, work.instruction.scope) if given is not None else str(tile.elements)
    snippet.add(f"mov.u32 {stride}, {elements}; mul.lo.u32 {stride}, {stride}, {tile.bits}; shr.u32 {stride}, {stride}, 3;")
    snippet.add(f"mov.u32 {line}, %laneid; add.u32 {line}, {line}, {first};")
    snippet.add(f"and.b32 {column}, {line}, {in_line - 1}; shr.u32 {line}, {line}, {in_line.bit_length() - 1};")
    snippet.add(f"mul.lo.u32 {column}, {column}, {_share(tile)}; mad.lo.u32 {column}, {line}, {stride}, {column};")
    return column
