"""suld, sust and sured (PTX ISA, "Surface Instructions"), on surfaces that this machine makes when they are first used.

The handle may be any number: a surface of that handle is there. If the host has made none (consan/libcuda), it is zero when a launch
begins, and has no upper bounds. A coordinate outside of it: `.trap` ends the launch, `.zero` reads zero and drops a store, `.clamp` takes
the nearest one inside. Its bytes have the names of instrument/surfaces.py. One that is not aligned counts as the aligned one
below.

Not handled: formatted stores (`sust.p`), whose format the surface object has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.registers import WORD_DTYPES
from consan.instrument import surfaces
from consan.instrument.ptx import TensorAddress
from consan.instrument.ptx.operands import flatten
from consan.textures.description import SurfaceInfo

from .atomics import read_modify_write
from .mbarrier_steps import per_lane
from .ops import atomic_function

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]

_HANDLES = (1 << surfaces.HANDLE_BITS) - 1
_LINE = 16  # bytes that are made at once: as many as the widest access has


class _Surface:
    """The operand [handle, {coordinates}] of an instruction, and its elements."""

    def __init__(self, context: DecodeContext) -> None:
        operand = next((each for each in context.instruction.operands if isinstance(each, TensorAddress)), None)
        if operand is None:
            raise context.unsupported("no surface")
        modifiers = context.modifiers
        self.context, self.wave, self.word = context, context.wave, modifiers["type"]
        self.count = int(modifiers.get("vec", "v1")[1:])
        self.element = WORD_DTYPES[self.word].itemsize
        self.outside = modifiers.get("outside", "clamp")
        self.step = self.element if "p" in modifiers else 1
        self.handle = context.source(operand.base, "u64")
        self.fields = surfaces.fields(modifiers["geom"])
        self.coordinates = [context.source(each, "s32") for each in surfaces.in_order(modifiers["geom"], operand.coords)]

    def lanes(self, sel: Any) -> tuple[Lanes, list[int]]:
        """The lanes that access the surface, and the name of the first byte of each."""
        lanes = self.wave.ids[sel]
        at = [per_lane(each, lanes).astype(np.int64) for each in self.coordinates]
        outside = np.any([each < 0 for each in at], axis=0) | self._beyond(lanes, at)
        if self.outside == "trap" and outside.any():
            lane = int(lanes[outside.argmax()])
            raise LaneError("trap", lane, self.context.site, message="a coordinate is outside of the surface")
        at[0] = at[0] * self.step // (self.element * self.count) * (self.element * self.count)
        names = (per_lane(self.handle, lanes).astype(np.uint64) & np.uint64((1 << surfaces.HANDLE_BITS) - 1)) << np.uint64(surfaces.HANDLE)
        for each, (low, bits) in zip(at, self.fields, strict=True):
            names = names | (each.clip(0).astype(np.uint64) & np.uint64((1 << bits) - 1)) << np.uint64(low)
        inside = np.ones(len(lanes), bool) if self.outside == "clamp" else ~outside
        return lanes[inside], names[inside].tolist()

    def _beyond(self, lanes: Lanes, at: list[Array]) -> Array:
        """The lanes whose elements are beyond the end of a surface that the host has made."""
        beyond = np.zeros(len(lanes), bool)
        handles = per_lane(self.handle, lanes).astype(np.uint64) & np.uint64(_HANDLES)
        for handle in np.unique(handles) if self.wave.arena.surface_objects else ():
            info = self.wave.arena.surface_objects.get(int(handle))
            if info is not None:
                last = [at[0] * self.step + self.element * self.count - 1, *at[1:]]
                too_far = [each >= bound for each, bound in zip(last, info.bounds, strict=False)]
                beyond |= (handles == handle) & np.any(too_far, axis=0)
        return beyond

    def _made(self, name: int, info: SurfaceInfo) -> Array:
        """The elements at a name of a surface that the host has made."""
        place, step, width = 0, 1, self.element * self.count
        for number, ((low, bits), bound) in enumerate(zip(self.fields, info.bounds, strict=False)):
            place += min(name >> low & (1 << bits) - 1, bound - (1 if number else width)) * step
            step *= bound
        return np.asarray(self.wave.arena.span(info.address + place, width).view(WORD_DTYPES[self.word]))

    def elements(self, name: int) -> Array:
        """The elements at a name."""
        info = self.wave.arena.surface_objects.get(name >> surfaces.HANDLE & _HANDLES)
        if info is not None:
            return self._made(name, info)
        line = self.wave.arena.surfaces.setdefault(name // _LINE, np.zeros(_LINE, np.uint8))
        at = name % _LINE
        return line[at : at + self.element * self.count].view(WORD_DTYPES[self.word])


def decode_load(context: DecodeContext) -> Step:
    """suld."""
    surface = _Surface(context)
    targets = [context.target(each, surface.word) for each in flatten(context.instruction.operands[0])]

    def part(sel: Any) -> None:
        for target in targets:
            target.write(context.wave.ids[sel], 0)
        for lane, name in zip(*surface.lanes(sel), strict=True):
            for target, value in zip(targets, surface.elements(name), strict=True):
                target.write([lane], value)

    return selective(part)


def decode_store(context: DecodeContext) -> Step:
    """sust.b."""
    surface = _Surface(context)
    sources = [context.source(each, surface.word) for each in flatten(context.instruction.operands[-1])]

    def part(sel: Any) -> None:
        for lane, name in zip(*surface.lanes(sel), strict=True):
            surface.elements(name)[:] = [each[lane] if each.ndim else each for each in sources]

    return selective(part)


def decode_reduction(context: DecodeContext) -> Step:
    """sured."""
    surface, word = _Surface(context), context.modifiers["type"]
    operation = context.modifiers["op"]
    typed = word.replace("b", "u") if operation in ("add", "min", "max") else word  # sured.p: of a surface of unsigned integers
    function, value = atomic_function(operation, typed), context.source(context.instruction.operands[-1], word)
    if function is None:
        raise context.unsupported()

    def part(sel: Any) -> None:
        for lane, name in zip(*surface.lanes(sel), strict=True):
            given = np.array([value[lane] if value.ndim else value])
            read_modify_write(surface.elements(name), np.zeros(1, np.intp), operation, function, given, None)

    return selective(part)


STEPS: Steps = {
    **{f"suld.b.geom{{.loadop}}{{.vec}}.type.{bounds}": decode_load for bounds in ("outside", "clamp")},
    **{f"sust.b.geom{{.storeop}}{{.vec}}.type.{bounds}": decode_store for bounds in ("outside", "clamp")},
    **{f"sured.{kind}.op.geom.type.{bounds}": decode_reduction for kind in "bp" for bounds in ("outside", "clamp")},
}
