"""ldmatrix and stmatrix, 8x8 matrices of 16-bit elements (PTX ISA, "ldmatrix", "stmatrix").

Thread l of a warp holds elements 2*(l%4) and 2*(l%4)+1 of row l/4 of each matrix; threads 8i to 8i+7 give the addresses of
matrix i's rows. With .trans the same fragment is of the transposed matrix. Not handled: .m16n16, .m8n16 and the 8, 6 and
4-bit formats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import Locator
from consan.backends.cpu.decode.operands import DecodeContext, Steps, flatten
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.wave import WARP
from consan.instrument.ptx import Operand

from .access import locator, space_of
from .lanes import active_warps

Array = npt.NDArray[Any]

_LANE = np.arange(WARP)


def _prepare(context: DecodeContext, address: Operand, access: str) -> tuple[Locator, int]:
    modifiers = context.modifiers
    if (modifiers["shape"], modifiers["type"]) != ("m8n8", "b16"):
        raise context.unsupported()
    return locator(context, space_of(context), address, 16, access), int(modifiers["num"][1:])


def require_whole_warps(context: DecodeContext, mask: Array, slots: Array) -> None:
    """End the launch where a warp executes an instruction in part: that is undefined. Both arrays are [warps, 32]."""
    if mask.all():
        return
    warp = int((~mask.all(1)).nonzero()[0][0])
    here = mask[warp]
    lanes = int(np.packbits(here, bitorder="little").view(np.uint32)[0])
    first = int(slots[warp][here][0])
    raise LaneError("divergent", first, context.site, address=lanes, message=str(context.wave.warp_in_cta[first]))


def _rows(context: DecodeContext, found: Locator, count: int, lanes: Array) -> tuple[Array, Array, Array]:
    """The view of 16-byte rows, their indices [warps, 8 * count], and the lanes of the warps."""
    mask, slots = active_warps(context.wave, lanes)
    require_whole_warps(context, mask, slots)
    senders = slots[:, : 8 * count]
    view, index = found.part(senders.reshape(-1))
    return view, index.reshape(senders.shape), slots


def decode_ldmatrix(context: DecodeContext) -> Step:
    """ldmatrix."""
    destination, address = context.instruction.operands[:2]
    found, count = _prepare(context, address, "read")
    targets = [context.target(t, "b32") for t in flatten(destination)]
    trans = "trans" in context.modifiers
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, rows, slots = _rows(context, found, count, ids[sel])
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


def decode_stmatrix(context: DecodeContext) -> Step:
    """stmatrix."""
    address, source = context.instruction.operands[:2]
    found, count = _prepare(context, address, "write")
    sources = [context.source(s, "b32") for s in flatten(source)]
    trans = "trans" in context.modifiers
    ids = context.wave.ids

    def part(sel: Any) -> None:
        view, rows, slots = _rows(context, found, count, ids[sel])
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


STEPS: Steps = {"ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type": decode_ldmatrix, "stmatrix": decode_stmatrix}
