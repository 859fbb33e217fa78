"""wmma.load and wmma.store (PTX ISA "wmma.load", "wmma.store", "Matrix Storage for WMMA"): fragments as ops_wmma.py has them.

A matrix of s4, u4 or b1 is moved as the bytes of its lines: it has one layout, by rows for A and by columns for B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.wave import WARP
from consan.instrument.isa.tiles import tile_of
from consan.instrument.ptx.operands import flatten

from .access import locator, space_of
from .lanes import active_warps
from .matrix import require_whole_warps

Array = npt.NDArray[Any]


class _Matrix:
    """The elements of a matrix in memory, row by row; of those below a byte, the bytes line by line."""

    def __init__(self, context: DecodeContext, address: Any, access: str) -> None:
        tile, operands = tile_of(context.modifiers), context.instruction.operands
        if tile.bits < 8 and tile.by_row == (context.modifiers.get("matrix") == "b"):
            raise context.unsupported()
        self.nbytes, self.bits, self.context = max(1, tile.bits // 8), tile.bits, context
        self.found = locator(context, space_of(context), address, self.nbytes, access)
        if tile.bits < 8:
            self.line, self.place = np.divmod(np.arange(tile.lines * tile.elements * tile.bits // 8), tile.elements * tile.bits // 8)
        else:
            row, column = np.divmod(np.arange(tile.rows * tile.columns), tile.columns)
            self.line, self.place = (row, column) if tile.by_row else (column, row)
        self.default = tile.elements
        self.stride = context.source(operands[2], "b32") if len(operands) > 2 else None
        self.register = "b64" if self.nbytes == 8 else "b32"

    def elements(self, sel: Any) -> tuple[Array, Array, Array]:
        """The view of memory, the index of each element [warps, elements], and the lanes of the warps."""
        wave, found = self.context.wave, self.found
        mask, slots = active_warps(wave, wave.ids[sel])
        require_whole_warps(self.context, mask, slots)
        leaders = slots[:, 0]
        base = found.source[leaders].astype(np.uint64) + np.uint64(found.offset & ((1 << 64) - 1))  # type: ignore[attr-defined]
        stride = np.full(len(leaders), self.default) if self.stride is None else _of(self.stride, leaders)
        distance = self.line * (stride[:, None].astype(np.int64) * self.bits // 8) + self.place * self.nbytes
        addresses = base[:, None] + distance.astype(np.uint64)
        view, index = found.resolve(addresses.reshape(-1), np.repeat(leaders, len(self.line)))  # type: ignore[attr-defined]
        return view, index.reshape(addresses.shape), slots


def _of(source: Array, lanes: Array) -> Array:
    return source[lanes] if source.ndim else np.full(len(lanes), source)


def decode_load(context: DecodeContext) -> Step:
    """wmma.load."""
    destination, address = context.instruction.operands[:2]
    matrix = _Matrix(context, address, "read")
    targets = [context.target(each, matrix.register) for each in flatten(destination)]
    word = np.uint64 if matrix.nbytes == 8 else np.uint32

    def part(sel: Any) -> None:
        view, index, slots = matrix.elements(sel)
        values = np.ascontiguousarray(view[index])
        room = len(targets) * WARP * np.dtype(word).itemsize // matrix.nbytes
        values = values[:, np.arange(room) % values.shape[1]]
        words = np.ascontiguousarray(values).view(word).reshape(len(slots), WARP, -1)
        for number, target in enumerate(targets):
            target.write(slots.reshape(-1), words[..., number].reshape(-1))

    return selective(part)


def decode_store(context: DecodeContext) -> Step:
    """wmma.store."""
    address, source = context.instruction.operands[:2]
    matrix = _Matrix(context, address, "write")
    sources = [context.source(each, matrix.register) for each in flatten(source)]

    def part(sel: Any) -> None:
        view, index, slots = matrix.elements(sel)
        words = np.stack([values[slots] if values.ndim else np.broadcast_to(values, slots.shape) for values in sources], axis=-1)
        view[index] = np.ascontiguousarray(words).reshape(len(slots), -1).view(view.dtype)[:, : index.shape[1]]

    return selective(part)


STEPS: Steps = {
    **{f"wmma.load.matrix.sync.aligned.layout.shape{space}.type": decode_load for space in (".ss", "{.ss}")},
    **{f"wmma.store.d.sync.aligned.layout.shape{space}.type": decode_store for space in (".ss", "{.ss}")},
}
