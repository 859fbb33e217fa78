"""Tensor copies and tensor maps (PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor",
"tensormap.replace", "tensormap.cp_fenceproxy").

The map is decoded from its 128 bytes when the copy is issued. Then everything is resolved and checked: which elements move
(tensor_boxes.py), that they are in memory, where the box lies in shared memory. The bytes move when the operation lands (copies.py).
A load fills elements outside the tensor and completes the whole box on its mbarrier; a store or reduction skips them.

The launch ends like a trap on a map that no driver would write, a map whose rank or mode is not the instruction's, an innermost coordinate
that is not on a multiple of 16 bytes, and a store that starts at a negative coordinate. Refused, because its effect is not
documented: all that tensor_boxes.py refuses.

Not documented either, and as an H200 does: the NaN that fills is 0x7ff7 in every 16 bits; a load rounds to tf32 to the nearest, ties to
even, and makes each NaN 0x7fffe000; a load of a type with .ftz flushes nothing; a store rounds nothing.

Not handled: .im2col::w and its kin. Prefetches and cache policies have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import Locator
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, nothing, selective
from consan.backends.cpu.state.copies import EMPTY, BulkOperation
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.memory import GLOBAL_BASE, RESERVED_SHARED
from consan.backends.cpu.state.registers import RAW_DTYPES, WORD_DTYPES
from consan.dataclass import dataclass
from consan.instrument.ptx import Operand, TensorAddress, Vector
from consan.tensormap.description import NBYTES, TensorMapInfo
from consan.tensormap.encoding import TensorMapError, decode as decode_map, replace_field

from . import tensor_boxes as boxes
from .access import gather, locator, scatter, space_of
from .atomics import read_modify_write
from .bulk import Range, destinations, operation_of
from .mbarrier_steps import barrier_locator, per_lane, units_of
from .ops import atomic_function
from .ops_half import OOB_NAN

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]

DIMENSIONS: Final = {f"{rank}d": rank for rank in range(1, 6)}
MODES: Final = frozenset(("tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs"))
_BOX_ALIGNMENT: Final = 128
_MAP_ALIGNMENT: Final = 64
_ROW_START: Final = 16
_NAN: Final = int(OOB_NAN) * 0x0001000100010001
_ROUNDED: Final = ("tf32", "tf32.ftz")
_INFINITY, _NAN_OF_TF32 = np.uint32(0x7F800000), np.uint32(0x7FFFE000)
# Element type of the map -> the type word of `red`, per operation (ISA, table of cp.reduce.async.bulk.tensor).
_BITS: Final = {"u32": "b32", "s32": "b32", "u64": "b64", "s64": "b64"}
_ORDERED: Final = {word: word for word in ("u32", "s32", "u64", "s64", "f16", "bf16")}
_COUNTED: Final = {"u32": "u32"}
_REDUCED: Final[dict[str, dict[str, str]]] = {
    "add": {word: word for word in ("u32", "s32", "u64", "f32", "f16", "bf16")},
    **dict.fromkeys(("min", "max"), _ORDERED),
    **dict.fromkeys(("inc", "dec"), _COUNTED),
    **dict.fromkeys(("and", "or", "xor"), _BITS),
}

read_map = lru_cache(maxsize=256)(decode_map)


def map_locator(context: DecodeContext, space: str, operand: Operand, access: str) -> Locator:
    """The locator of the 128 bytes of a tensor map."""
    found = locator(context, space, operand, NBYTES, access)
    found.align_mask = _MAP_ALIGNMENT - 1
    return found


def map_bytes(found: Locator, lanes: Lanes) -> list[bytes]:
    """The bits of each lane's map, as they are now."""
    return [row.tobytes() for row in gather(*found.part(lanes), NBYTES).reshape(len(lanes), -1)]


class Tensor:
    """The operand [map, {coordinates}] of an instruction, with its im2col offsets."""

    def __init__(self, context: DecodeContext, operand: Operand, offsets: Operand | None) -> None:
        if not isinstance(operand, TensorAddress):
            raise context.unsupported(operand.text)
        self.context, self.wave = context, context.wave
        self.found = map_locator(context, "global", operand.base, "read")
        self.coordinates = [context.source(coordinate, "s32") for coordinate in operand.coords]
        self.offsets = [context.source(offset, "u16") for offset in offsets.elements] if isinstance(offsets, Vector) else []
        modifiers = context.modifiers
        self.rank = DIMENSIONS[modifiers["dim"]]
        self.mode = next((modifiers[name] for name in ("load_mode", "store_mode", "reduce_mode") if name in modifiers), "tile")
        if self.mode not in MODES:
            raise context.unsupported(f".{self.mode}")
        wanted = 5 if self.mode in ("tile::gather4", "tile::scatter4") else self.rank
        if len(self.coordinates) != wanted or len(self.offsets) != (self.rank - 2 if self.mode == "im2col" else 0):
            raise context.unsupported("the number of coordinates")

    def items(self, lanes: Lanes, access: str) -> list[Items]:
        """The elements of global memory that each lane's copy touches."""
        data = map_bytes(self.found, lanes)
        starts = np.stack([per_lane(coordinate, lanes) for coordinate in self.coordinates], 1).tolist()
        offsets = np.stack([per_lane(offset, lanes) for offset in self.offsets], 1).tolist() if self.offsets else [[]] * len(lanes)
        each = zip(lanes.tolist(), data, starts, offsets, strict=True)
        return [self._items(lane, self._map(lane, bits), start, offset, access) for lane, bits, start, offset in each]

    def _map(self, lane: int, data: bytes) -> TensorMapInfo:
        try:
            info = read_map(data)
        except TensorMapError as error:
            raise self._trap(lane, str(error)) from None
        if info.rank != self.rank or info.im2col != self.mode.startswith("im2col"):
            kind = "im2col" if info.im2col else "tiled"
            raise self._trap(lane, f"the tensor map is a {kind} one of {info.rank} dimensions")
        if info.address % 16:
            raise self._trap(lane, f"the tensor map's address, {info.address:#x}, is not a multiple of 16")
        return info

    def _trap(self, lane: int, message: str) -> LaneError:
        return LaneError("trap", lane, self.context.site, message=message)

    def _items(self, lane: int, info: TensorMapInfo, start: list[int], offsets: list[int], access: str) -> Items:
        if info.packed > 1:
            start = [start[0] // info.packed, *start[1:]]
        if start[0] * info.element_bytes % _ROW_START:  # not in the ISA; Hopper ends the kernel: an illegal instruction
            raise self._trap(lane, f"the innermost coordinate, {start[0]}, is not on a multiple of {_ROW_START} bytes of its row")
        if access != "read" and self.mode != "tile::scatter4" and min(start) < 0:  # the ISA forbids it, with the same effect
            raise self._trap(lane, f"a store starts at a negative coordinate, {min(start)}")
        try:
            boxes.check(info)
            if info.im2col:
                box = boxes.im2col(info, start, offsets)
            elif self.mode == "tile":
                box = boxes.tiled(info, start)
            else:
                box = boxes.rows(info, start[0], start[1:])
        except boxes.Refused as error:
            raise self.context.unsupported(str(error)) from None
        offsets_inside = box.offsets if box.inside.all() else box.offsets[box.inside]
        self._check(lane, info, info.address + offsets_inside, access)
        shift = info.element_bytes.bit_length() - 1
        view = self.wave.arena.raw.view(RAW_DTYPES[info.element_bytes])
        return Items(info, view, (info.address - GLOBAL_BASE + offsets_inside) >> shift, box.inside)

    def _check(self, lane: int, info: TensorMapInfo, addresses: Array, access: str) -> None:
        """Raise a fault if an element of the tensor is not in memory."""
        if not len(addresses):
            return
        arena, size = self.wave.arena, info.element_bytes
        first = arena.find(int(addresses.min()))
        if first is not None and int(addresses.max()) + size <= first.end:
            return
        wrong = (~arena.valid(addresses.view(np.uint64), size)).nonzero()[0]
        if len(wrong):
            address, message = int(addresses[wrong[0]]), "an element of the tensor that its map describes"
            raise LaneError(
                "out-of-bounds", lane, self.context.site, address=address, nbytes=size, space="global", access=access, message=message
            )


def _tf32(words: Array) -> Array:
    """Words of f32, with 10 bits of mantissa: to the nearest, ties to even. Infinities stay as they are."""
    size = words & np.uint32(0x7FFFFFFF)
    rounded = (words + (np.uint32(0xFFF) + ((words >> np.uint32(13)) & np.uint32(1)))) & np.uint32(0xFFFFE000)
    return np.where(size > _INFINITY, _NAN_OF_TF32, np.where(size == _INFINITY, words, rounded))


@dataclass(frozen=True, eq=False)
class Items:
    """The elements of one box: items of global memory, and which places of the box they are for."""

    info: TensorMapInfo
    view: Array
    index: Array  # of the elements inside of the tensor
    inside: npt.NDArray[np.bool_]  # of all of the box

    @property
    def nbytes(self) -> int:
        """Bytes of the box."""
        return len(self.inside) * self.info.element_bytes

    def load(self) -> Array:
        """The current values of the box, with fill values outside the tensor."""
        found = self.view[self.index]
        if self.info.dtype in _ROUNDED:
            found = _tf32(found)
        if len(self.index) == len(self.inside):
            return found
        dtype = self.view.dtype
        fill = _NAN if self.info.oob == "nan" else 0
        data = np.full(len(self.inside), fill & int(np.iinfo(dtype).max), dtype)
        data[self.inside] = found
        return data

    def store(self, data: Array) -> None:
        """Write the part of a box that is inside the tensor."""
        self.view[self.index] = data.view(self.view.dtype)[self.inside]

    def reducer(self, operation: str) -> Callable[[Array], None] | None:
        """The function that reduces data into the part of a box that is inside the tensor; None if the type has no such operation."""
        word = _REDUCED[operation].get(self.info.dtype)
        if word is None:
            return None
        function = atomic_function("add.ftz" if (operation, word) == ("add", "f32") else operation, word)
        if function is None:
            return None
        view = self.view.view(WORD_DTYPES[word])

        def reduce(data: Array) -> None:
            read_modify_write(view, self.index, operation, function, data.view(view.dtype)[self.inside], None)

        return reduce


class _Copies:
    """A decoded tensor copy or reduction."""

    def __init__(self, context: DecodeContext) -> None:
        self.context, self.wave, self.plan = context, context.wave, context.function.plan
        operands = list(context.instruction.operands)
        self.loads = "complete_tx" in context.modifiers
        tensor, shared = (operands.pop(1), operands.pop(0)) if self.loads else (operands.pop(0), operands.pop(0))
        space = next(word for word in context.words if word in ("shared::cta", "shared::cluster"))
        self.shared = Range(context, space, shared, "write" if self.loads else "read")
        self.barrier = barrier_locator(context, operands.pop(0)) if self.loads else None
        offsets = operands.pop(0) if operands and isinstance(operands[0], Vector) else None
        self.tensor = Tensor(context, tensor, offsets)
        self.ctas = context.source(operands.pop(0), "u16") if "multicast" in context.modifiers else None
        self.operation = operation_of(context)

    def step(self) -> Step:
        ids = self.wave.ids
        issue = self._load if self.loads else self._store
        return selective(lambda sel: issue(ids[sel]))

    def _chunks(self, lanes: Lanes, items: list[Items]) -> list[Array]:
        """The 16-byte items of the arena that each lane's box occupies."""
        wave = self.wave
        starts = self.shared.part(lanes, np.array([item.nbytes for item in items]))
        found = []
        for lane, start, item in zip(lanes.tolist(), starts.tolist(), items, strict=True):
            base = wave.windows.shared + wave.windows.cta_at(start) * wave.windows.stride - RESERVED_SHARED
            if start % _BOX_ALIGNMENT:
                raise self._misaligned(lane, start - base, item.nbytes)
            addresses = boxes.chunk_addresses(start - base, item.nbytes, item.info.swizzle)
            found.append((addresses + base) >> 4)
        return found

    def _misaligned(self, lane: int, address: int, nbytes: int) -> LaneError:
        message = f"a box in shared memory begins at a multiple of {_BOX_ALIGNMENT} bytes"
        return LaneError(
            "misaligned",
            lane,
            self.context.site,
            address=address,
            nbytes=nbytes,
            space="shared",
            access=self.shared.access,
            message=message,
        )

    def _load(self, lanes: Lanes) -> None:
        assert self.barrier is not None
        items = self.tensor.items(lanes, "read")
        chunks, units = self._chunks(lanes, items), units_of(self.barrier, lanes).tolist()
        for k, (item, chunk, unit) in enumerate(zip(items, chunks, units, strict=True)):
            lane = lanes[k : k + 1]
            for shift, signal in destinations(self.context, self.ctas, lane, int(chunk[0]) << 4, unit):
                self._start_load(lane, item, chunk + (shift >> 4), unit + (signal >> 3))

    def _start_load(self, lane: Lanes, item: Items, chunk: Array, unit: int) -> None:
        shared = self.wave.arena.views[4]

        def write(data: Array) -> None:
            shared[chunk] = data.view(shared.dtype)

        complete = self.plan.mbarriers.completion(unit, item.nbytes)
        receiver = None if self.ctas is None else self.wave.windows.cta_at(int(chunk[0]) << 4)
        signals, site = frozenset((unit,)), self.context.site
        self.plan.copies.issue(BulkOperation(lane, item.load, write, complete, signals=signals, site=site, receiver=receiver))

    def _store(self, lanes: Lanes) -> None:
        items = self.tensor.items(lanes, "rmw" if self.operation else "write")
        shared = self.wave.arena.views[4]
        for k, (item, chunk) in enumerate(zip(items, self._chunks(lanes, items), strict=True)):
            write = item.reducer(self.operation) if self.operation else item.store
            if write is None:
                raise self.context.unsupported(f".{self.operation} of {item.info.dtype}")

            def read(chunk: Array = chunk) -> Array:
                return shared[chunk]

            self.plan.copies.issue(BulkOperation(lanes[k : k + 1], read, write, None, "bulk", EMPTY, site=self.context.site))


def decode_copy(context: DecodeContext) -> Step:
    """cp.async.bulk.tensor, cp.reduce.async.bulk.tensor."""
    return _Copies(context).step()


def _prefetch(_context: DecodeContext) -> Step:
    return nothing()


# Maps ------------------------------------------------------------------------------------------------------------------


def _replace(context: DecodeContext) -> Step:
    modifiers, space = context.modifiers, space_of(context)
    field, word = next(modifiers[name] for name in ("field1", "field2", "field3") if name in modifiers), modifiers["type"]
    address, *rest = context.instruction.operands
    ordinal = int(getattr(rest.pop(0), "value", 0)) if len(rest) > 1 else 0
    value, ids = context.source(rest[0], "u64" if word == "b64" else "u32"), context.wave.ids
    found = map_locator(context, space, address, "rmw")

    def part(sel: Any) -> None:
        lanes = ids[sel]
        view, index = found.part(lanes)
        for k, new in enumerate(per_lane(value, lanes).tolist()):  # one after another: lanes may share the map
            where = index[k : k + 1]
            data = gather(view, where, NBYTES).tobytes()
            try:
                data = replace_field(data, field, new, ordinal)
            except TensorMapError as error:
                raise context.unsupported(str(error)) from None
            scatter(view, where, np.frombuffer(data, np.uint8), NBYTES)

    return selective(part)


def _copy_map(context: DecodeContext) -> Step:
    target, source = context.instruction.operands[:2]
    to, from_ = map_locator(context, "global", target, "write"), map_locator(context, "shared", source, "read")
    ids = context.wave.ids

    def part(sel: Any) -> None:
        lanes = ids[sel]
        data = gather(*from_.part(lanes), NBYTES)
        scatter(*to.part(lanes), data, NBYTES)

    return selective(part)


STEPS: Steps = {
    "cp.async.bulk.tensor": decode_copy,
    "cp.reduce.async.bulk.tensor": decode_copy,
    "cp.async.bulk.prefetch.tensor": _prefetch,
    "tensormap.replace": _replace,
    "tensormap.cp_fenceproxy": _copy_map,
}
