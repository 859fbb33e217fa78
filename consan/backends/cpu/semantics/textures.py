"""tex, tld4 and txq (PTX ISA, "Texture Instructions"), of texture objects and references in unified mode.

A handle is one that the host has made (`consan.Texture`); any other ends the launch, and so does a texture of another geometry. A
texture has one level of detail: `.level`, `.grad` and `.base` read it. Channels that its elements lack are 0, which is not documented.
A layer or a sample beyond the last one is the last one.

Not handled: references that are parameters, samplers of their own, layers of several samples, comparisons of depth, and queries whose
answers are numbers of the source language (channel_data_type, channel_order). A fetch of a type that the texture does not give is
undefined: refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Steps, Target
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.faults import LaneError
from consan.instrument.ptx import Pair, Register, TensorAddress, Vector
from consan.instrument.ptx.operands import flatten
from consan.textures.description import FACES, TextureInfo

from .texture_filter import Texels, layers_of, on_cube, scaled

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]
_GEOMETRIES = {"1d": (1, False, False), "2d": (2, False, False), "3d": (3, False, False), "a1d": (1, True, False), "a2d": (2, True, False)}
_MULTISAMPLE = "2dms"
_GEOMETRIES[_MULTISAMPLE] = _GEOMETRIES["a2d"]  # samples are as layers
_GEOMETRIES |= {"cube": (2, False, True), "acube": (2, True, True)}  # dimensions, layers, faces
_CHANNELS = 4
_BEHIND = {"level": 1, "grad": 2}  # operands that choose a level of detail


def _of_lanes(source: Array, lanes: Lanes) -> Array:
    """A source of the selected lanes."""
    return source[lanes] if source.ndim else np.full(len(lanes), source)


class _Object:
    """The operand [handle, {coordinates}] or [handle] of an instruction."""

    def __init__(self, context: DecodeContext) -> None:
        operand = context.instruction.operands[1]
        base: Any = getattr(operand, "base", None)
        if getattr(operand, "sampler", None) is not None:
            raise context.unsupported("a sampler of its own")
        if not isinstance(base, Register) and context.place(base).param is not None:
            raise context.unsupported("a texture reference that is a parameter: pass a texture object")
        self.context, self.wave, self.handle = context, context.wave, context.source(base, "u64")

    def groups(self, lanes: Lanes) -> list[tuple[Lanes, TextureInfo]]:
        """The lanes of each texture object."""
        handles = _of_lanes(self.handle, lanes)
        return [(lanes[handles == handle], self._info(int(handle), lanes)) for handle in np.unique(handles)]

    def _info(self, handle: int, lanes: Lanes) -> TextureInfo:
        found: TextureInfo | None = self.wave.arena.texture(handle)
        if found is None:
            raise self.trap(
                lanes, f"{handle:#x} is no texture object, and no texture reference that a texture is bound to (pass a consan.Texture)"
            )
        return found

    def trap(self, lanes: Lanes, message: str) -> LaneError:
        """The error that ends the launch."""
        return LaneError("trap", int(lanes[0]), self.context.site, message=message)


class _Fetch(_Object):
    """An instruction that reads elements."""

    def __init__(self, context: DecodeContext) -> None:
        super().__init__(context)
        operand, modifiers = context.instruction.operands[1], context.modifiers
        if not isinstance(operand, TensorAddress) or modifiers["geom"] not in _GEOMETRIES:
            raise context.unsupported("layers of several samples")
        self.count, self.layered, self.cube = _GEOMETRIES[modifiers["geom"]]
        self.exact = modifiers.get("ctype", "f32") == "s32"
        coordinates = list(operand.coords)
        self.layer = context.source(coordinates.pop(0), "u32") if self.layered else np.array(0)
        needed = self.count + self.cube
        self.coordinates = [context.source(each, "s32" if self.exact else "f32") for each in coordinates[:needed]]
        rest = context.instruction.operands[2 + _BEHIND.get(modifiers.get("lod", ""), 0) :]
        if len(rest) > 1 or (rest and not isinstance(rest[0], Vector) and self.count > 1):
            raise context.unsupported("a comparison of depth")
        self.offsets = [context.source(each, "s32") for each in flatten(rest[0])[: self.count]] if rest else []

    def texels(self, info: TextureInfo, lanes: Lanes) -> Texels:
        """The elements of a texture."""
        geometry = self.context.modifiers["geom"]
        wanted = self.count, self.cube, geometry == _MULTISAMPLE
        if (len(info.extents), info.cube, info.multisample) != wanted or (bool(info.layers) != (self.layered or self.cube)):
            raise self.trap(lanes, f"the texture is not {geometry}")
        data = self.wave.arena.span(info.address, info.nbytes)
        return Texels(info, data.view(info.dtype).reshape(-1, info.channels))

    def places(self, info: TextureInfo, lanes: Lanes) -> tuple[list[Array], Array]:
        """The positions in texels, and the layer or face."""
        at = [_of_lanes(each, lanes) for each in self.coordinates]
        layer = _of_lanes(self.layer, lanes).astype(np.int64).clip(0, layers_of(info) - 1)
        if self.cube:
            positions, face = on_cube(info, *at)
            layer = layer * FACES + face
        else:
            positions = [each.astype(np.float64) for each in at] if self.exact else scaled(info, at)
        return [
            each + _of_lanes(step, lanes) for each, step in zip(positions, self.offsets or [np.array(0)] * len(positions), strict=True)
        ], layer


def _targets(context: DecodeContext) -> tuple[list[Target], Target | None, str]:
    """Where the channels go, the predicate that says that the elements are in memory, and the type of a channel."""
    modifiers, first = context.modifiers, context.instruction.operands[0]
    word = modifiers.get("dtype", "f16x2")
    resident = context.target(first.second, "pred") if isinstance(first, Pair) else None
    vector = first.first if isinstance(first, Pair) else first
    return [context.target(each, "b32" if word == "f16x2" else word) for each in flatten(vector)], resident, word


def _typed(context: DecodeContext, info: TextureInfo, values: Array, word: str) -> Array:
    """Channels as the instruction gives them, a column for each destination."""
    if info.gives_floats != (word[0] == "f"):
        raise context.unsupported(f"a fetch of {word} from a texture of {info.type} elements, read as {info.read}")
    if word in ("u32", "s32"):
        return values.astype(np.int64).astype(np.uint32).view(np.int32 if word == "s32" else np.uint32)
    floats = values.astype(np.float16 if word.startswith("f16") else np.float32)
    return floats.view(np.uint32) if word == "f16x2" else floats


def _decode(context: DecodeContext, read: Any) -> Step:
    fetch = _Fetch(context)
    targets, resident, word = _targets(context)

    def part(sel: Any) -> None:
        for lanes, info in fetch.groups(context.wave.ids[sel]):
            values = np.zeros((len(lanes), _CHANNELS))
            found = read(fetch.texels(info, lanes), *fetch.places(info, lanes), fetch.exact)
            values[:, : found.shape[1]] = found
            columns = _typed(context, info, values, word)
            for number, target in enumerate(targets):
                target.write(lanes, columns[:, number])
            if resident is not None:
                resident.write(lanes, True)

    return selective(part)


def decode_fetch(context: DecodeContext) -> Step:
    """tex."""
    return _decode(context, lambda texels, positions, layer, exact: texels.fetch(positions, layer, exact=exact))


def decode_gather(context: DecodeContext) -> Step:
    """tld4."""
    channel = "rgba".index(context.modifiers["comp"])

    def read(texels: Texels, positions: list[Array], layer: Array, exact: bool) -> Array:
        if channel >= texels.info.channels:
            return np.zeros((len(layer), _CHANNELS))
        return texels.gather(positions, layer, channel)

    return _decode(context, read)


_ANSWERS: dict[str, Callable[[TextureInfo], int]] = {
    "width": lambda info: info.extents[0],
    "height": lambda info: info.extents[1] if len(info.extents) > 1 else 0,
    "depth": lambda info: info.extents[2] if len(info.extents) > 2 else 0,
    "array_size": lambda info: layers_of(info) if info.layers and not info.multisample else 0,
    "normalized_coords": lambda info: int(info.normalized),
    "num_mipmap_levels": lambda info: 1,
    "num_samples": lambda info: layers_of(info) if info.multisample else 1,
}


def decode_query(context: DecodeContext) -> Step:
    """txq. A level other than the first does not exist: its size is 0."""
    textures, words = _Object(context), context.modifiers
    answer = _ANSWERS.get(words.get("query", words.get("size", "")))
    if answer is None:
        raise context.unsupported("the answer is a number of the source language")
    target = context.target(context.instruction.operands[0], "b32")
    level = context.source(context.instruction.operands[2], "u32") if "level" in words else np.array(0)

    def part(sel: Any) -> None:
        for lanes, info in textures.groups(context.wave.ids[sel]):
            target.write(lanes, np.where(_of_lanes(level, lanes) == 0, answer(info), 0).astype(np.uint32))

    return selective(part)


STEPS: Steps = {"tex": decode_fetch, "tld4": decode_gather, "txq": decode_query}
