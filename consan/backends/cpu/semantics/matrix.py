"""ldmatrix and stmatrix (PTX ISA, "ldmatrix", "stmatrix").

8x8 matrices of 16-bit elements: thread l of a warp holds elements 2*(l%4) and 2*(l%4)+1 of row l/4 of each matrix; threads 8i to 8i+7
give the addresses of matrix i's rows. With .trans the same fragment is of the transposed matrix.

Matrices of bytes have rows of 16 bytes, and a register holds four elements. In .m8n16 (never transposed) thread l has columns 4*(l%4) to
4*(l%4)+3 of row l/4. In .m16n16 (always transposed) it has, in register r and byte v, column l/4 + 8*(v/2) of row 4*(l%4) + 2*r + v%2
as the addresses count them. In .m16n8 (stmatrix, always transposed) byte v is column l/4 + 8*(v/2) of row 2*(l%4) + v%2. CuTe has these
in text (`SM100_U8x8_LDSM_T`, `SM100_SU4_DU8x16_x1_LDSM_N`, `SM100_U8x4_STSM_T`). Elements of 4 and 6 bits become bytes (`unpacked`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import Locator
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.wave import WARP
from consan.instrument.ptx import Operand
from consan.instrument.ptx.operands import flatten

from .access import locator, space_of
from .lanes import active_warps

Array = npt.NDArray[Any]

_LANE = np.arange(WARP)


_BYTE = np.arange(4)
_ROW_BYTES = 16  # of a matrix of bytes
_TYPED = frozenset({("m8n8", "b16"), ("m16n16", "b8"), ("m16n8", "b8")})
# The row and column of each byte that a lane holds of a matrix of bytes: [32, bytes].
_PLACES = {
    "m8n16": (_LANE[:, None] // 4 + 0 * _BYTE, 4 * (_LANE[:, None] % 4) + _BYTE),
    "m16n16": (
        4 * (_LANE[:, None] % 4) + np.arange(8) // 4 * 2 + np.arange(8) % 2,
        _LANE[:, None] // 4 + 8 * (np.arange(8) % 4 // 2),
    ),
    "m16n8": (2 * (_LANE[:, None] % 4) + _BYTE % 2, _LANE[:, None] // 4 + 8 * (_BYTE // 2)),
}


def _prepare(context: DecodeContext, address: Operand, access: str) -> tuple[Locator, int]:
    modifiers = context.modifiers
    if (modifiers.get("shape", "m8n8"), modifiers.get("type", "b16")) not in _TYPED:
        raise context.unsupported()
    return locator(context, space_of(context), address, 16, access), int(modifiers["num"][1:])


def unpacked(octets: Array, source: str) -> Array:
    """Chunks of 16 bytes [..., 16] with the 4- or 6-bit elements that they hold spread over 16 bytes (ISA "Optional Decompression")."""
    if source == "b4x16_p64":
        codes = np.stack([octets[..., :8] & 15, octets[..., :8] >> 4], -1)
        return np.ascontiguousarray((codes << 2).reshape(octets.shape))
    if source == "b6x16_p32":
        return np.ascontiguousarray(six_bits(octets[..., :12]).reshape(octets.shape))
    return octets


def six_bits(octets: Array) -> Array:
    """Codes of four elements from each three bytes."""
    three = octets.reshape(*octets.shape[:-1], -1, 3).astype(np.uint32)
    word = three[..., 0] | three[..., 1] << np.uint32(8) | three[..., 2] << np.uint32(16)
    codes = word[..., None] >> np.arange(0, 24, 6, dtype=np.uint32) & np.uint32(63)
    return np.asarray(codes.reshape(*octets.shape[:-1], -1).astype(np.uint8))


def require_whole_warps(context: DecodeContext, mask: Array, slots: Array) -> None:
    """End the launch where a warp executes an instruction in part: that is undefined. Both arrays are [warps, 32]."""
    if mask.all():
        return
    warp = int((~mask.all(1)).nonzero()[0][0])
    here = mask[warp]
    lanes = int(np.packbits(here, bitorder="little").view(np.uint32)[0])
    first = int(slots[warp][here][0])
    raise LaneError("divergent", first, context.site, address=lanes, message=str(context.wave.warps.in_cta[first]))


def _rows(context: DecodeContext, found: Locator, count: int, lanes: Array) -> tuple[Array, Array, Array]:
    """The view of 16-byte rows, the indices of `count` of them for each warp, and the lanes of the warps."""
    mask, slots = active_warps(context.wave, lanes)
    require_whole_warps(context, mask, slots)
    senders = slots[:, :count]
    view, index = found.part(senders.reshape(-1))
    return view, index.reshape(senders.shape), slots


def _load_halves(context: DecodeContext) -> Step:
    destination, address = context.instruction.operands[:2]
    found, count = _prepare(context, address, "read")
    targets = [context.target(t, "b32") for t in flatten(destination)]
    trans = "trans" in context.modifiers
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, rows, slots = _rows(context, found, 8 * count, ids[sel])
        lanes = slots.reshape(-1)
        for matrix, target in enumerate(targets):
            mine = rows[:, 8 * matrix : 8 * matrix + 8]
            target.write(lanes, (_transposed(view, mine) if trans else _straight(view, mine)).reshape(-1))

    return selective(part)


def _straight(view: Array, rows: Array) -> Array:
    return np.asarray(view.view(np.uint32)[rows[:, _LANE // 4] * 4 + _LANE % 4])


def _halves(rows: Array) -> tuple[Array, Array]:
    """Indices of the two 16-bit elements that each lane holds of the transposed matrix."""
    return rows[:, 2 * (_LANE % 4)] * 8 + _LANE // 4, rows[:, 2 * (_LANE % 4) + 1] * 8 + _LANE // 4


def _transposed(view: Array, rows: Array) -> Array:
    elements = view.view(np.uint16)
    low, high = (elements[index].astype(np.uint32) for index in _halves(rows))
    return np.asarray(low | high << np.uint32(16))


def _store_halves(context: DecodeContext) -> Step:
    address, source = context.instruction.operands[:2]
    found, count = _prepare(context, address, "write")
    sources = [context.source(s, "b32") for s in flatten(source)]
    trans = "trans" in context.modifiers
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, rows, slots = _rows(context, found, 8 * count, ids[sel])
        for matrix, values in enumerate(sources):
            mine = rows[:, 8 * matrix : 8 * matrix + 8]
            words = values[slots] if values.ndim else np.broadcast_to(values, slots.shape)
            if trans:
                low, high = _halves(mine)
                elements = view.view(np.uint16)
                elements[low] = words.astype(np.uint16)
                elements[high] = (words >> np.uint32(16)).astype(np.uint16)
            else:
                view.view(np.uint32)[mine[:, _LANE // 4] * 4 + _LANE % 4] = words

    return selective(part)


def _of_bytes(context: DecodeContext) -> tuple[str, Array, Array, int]:
    """The shape of a matrix of bytes, the rows and columns of each lane's bytes, and the number of rows."""
    shape = next(word for word in context.words if word in _PLACES)
    rows, columns = _PLACES[shape]
    return shape, rows, columns, int(rows.max()) + 1


def decode_bytes(context: DecodeContext) -> Step:
    """ldmatrix of 8, 6 or 4-bit elements."""
    destination, address = context.instruction.operands[:2]
    shape, rows, columns, height = _of_bytes(context)
    found, count = _prepare(context, address, "read")
    targets = [context.target(t, "b32") for t in flatten(destination)]
    source, ids = context.modifiers.get("src_fmt", ""), context.wave.ids
    if len(targets) * _BYTE.size != count * rows.shape[1]:
        raise context.unsupported(f"{len(targets)} registers for {shape}")

    def part(sel: Any) -> None:
        view, index, slots = _rows(context, found, height * count, ids[sel])
        octets = unpacked(view.view(np.uint8).reshape(-1, _ROW_BYTES)[index], source).reshape(len(slots), count, height, _ROW_BYTES)
        words = np.ascontiguousarray(octets[:, :, rows, columns]).view(np.uint32).transpose(1, 3, 0, 2).reshape(len(targets), -1)
        for target, values in zip(targets, words, strict=True):
            target.write(slots.reshape(-1), values)

    return selective(part)


def decode_ldmatrix(context: DecodeContext) -> Step:
    """ldmatrix of whole registers' elements, or of bytes."""
    return decode_bytes(context) if "b8" in context.words else _load_halves(context)


def decode_stmatrix(context: DecodeContext) -> Step:
    """stmatrix."""
    return _store_bytes(context) if "b8" in context.words else _store_halves(context)


def _store_bytes(context: DecodeContext) -> Step:
    address, source = context.instruction.operands[:2]
    _, rows, columns, height = _of_bytes(context)
    if "trans" not in context.modifiers:
        raise context.unsupported()
    found, count = _prepare(context, address, "write")
    sources = [context.source(s, "b32") for s in flatten(source)]
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, index, slots = _rows(context, found, height * count, ids[sel])
        for matrix, values in enumerate(sources):
            words = np.ascontiguousarray(values[slots] if values.ndim else np.broadcast_to(values, slots.shape))
            mine = index[:, height * matrix : height * (matrix + 1)]
            view.view(np.uint8)[mine[:, rows] * _ROW_BYTES + columns] = words.view(np.uint8).reshape(*words.shape, _BYTE.size)

    return selective(part)


STEPS: Steps = {
    "ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type": decode_ldmatrix,
    "ldmatrix.sync.aligned.m8n16.num{.ss}.b8x16.src_fmt": decode_bytes,
    "ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8x16.src_fmt": decode_bytes,
    "stmatrix": decode_stmatrix,
}
