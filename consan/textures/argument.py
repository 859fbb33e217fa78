"""`consan.Texture` and the `tex:` arguments of the command line: a texture object over an array, passed by its handle.

Shapes are in NumPy's order, outermost first: (layers or faces,) (depth,) (height,) width (, channels).

Not handled: mipmaps, layers of several samples, block-compressed and sRGB textures, anisotropic filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.textures.description import ADDRESSES, FACES, FILTERS, MEMORIES, READS, SHAPES, TextureInfo

HANDLE_BYTES: Final = 8
_TYPES: Final = {"u1": "u8", "i1": "s8", "u2": "u16", "i2": "s16", "u4": "u32", "i4": "s32", "f2": "f16", "f4": "f32"}
_CHOICES: Final = {"memory": MEMORIES, "filter": FILTERS, "address": ADDRESSES, "read": READS, "shape": SHAPES}
_NUMBERS: Final = ("channels", "normalized")


class Texture:
    """A texture object of `array` for `consan.launch`, on the virtual machine. The kernel takes it as a `cudaTextureObject_t`.

    `memory`: "array" (a copy that no address reaches), "linear" or "pitch2d" (the memory of the array, which a kernel may also have as a
    pointer). `filter`, `address` (of all dimensions), `normalized` (the coordinates) and `read` are those of `cudaTextureDesc`; the
    border is zero. `channels`: 1, 2 or 4, the last axis if there are several. `shape`: "layered", where the first axis counts layers,
    "cube", where it counts faces, or "multisample", where it counts the samples of each element.

    Raises `UsageError` for what CUDA would refuse.
    """

    def __init__(
        self, array: npt.NDArray[Any], *, memory: str = "array", filter: str = "point", address: str = "clamp",  # noqa: A002 - CUDA's word
        normalized: bool = False, read: str = "element", channels: int = 1, shape: str = "plain",
    ) -> None:  # fmt: skip
        for name, value in {"memory": memory, "filter": filter, "address": address, "read": read, "shape": shape}.items():
            if value not in _CHOICES[name]:
                raise UsageError(f"texture: {name} is {value!r}, expected {', '.join(_CHOICES[name])}")
        if not isinstance(array, np.ndarray) or array.dtype.str[1:] not in _TYPES:
            raise UsageError(f"texture: expected a NumPy array of {', '.join(_TYPES.values())}")
        if channels not in (1, 2, 4) or (channels > 1 and array.shape[-1:] != (channels,)):
            raise UsageError(f"texture: {channels} channels of an array of shape {array.shape}; expected 1, 2 or 4, as its last axis")
        self.array = array
        extents = array.shape[: array.ndim - (channels > 1)][::-1]
        layers = extents[-1] if extents and shape != "plain" else 0
        extents = extents[:-1] if layers else extents
        modes = (address,) * len(extents)
        self.info = TextureInfo(
            _TYPES[array.dtype.str[1:]],
            channels,
            extents,
            0,
            layers,
            shape == "cube",
            memory,
            filter,
            modes,
            bool(normalized),
            read,
            multisample=shape == "multisample",
        )
        refuse_what_cuda_refuses(self.info)

    def bound_to(self, reference: str) -> Texture:
        """The same texture, bound to the `.texref` of that name in the module: no parameter, wherever it is among the arguments."""
        bound = copy(self)
        bound.info = replace(self.info, reference=reference)
        return bound

    def at(self, address: int) -> TextureInfo:
        """The texture of the array's copy at this address."""
        return replace(self.info, address=address)


def refuse_what_cuda_refuses(info: TextureInfo) -> None:
    """Raise `UsageError` for what CUDA refuses ("Texture Memory", `cudaCreateTextureObject`)."""
    count, wrapped = len(info.extents), not {"wrap", "mirror"}.isdisjoint(info.addresses)
    rules = {
        f"{count} dimensions: a texture has one to three": not 1 <= count <= 3 or min(info.extents) < 1,
        "layers have one or two dimensions": bool(info.layers) and count > 2,
        "a cube has six square faces for each layer": info.cube
        and (count != 2 or info.extents[0] != info.extents[1] or not info.layers or info.layers % FACES != 0),
        "linear memory has one dimension, no filter, and coordinates that are not normalized": info.memory == "linear"
        and (count != 1 or bool(info.layers) or info.filter != "point" or info.normalized),
        "several samples are those of two dimensions in an array": info.multisample and (count != 2 or info.memory != "array"),
        "pitch2d memory has two dimensions": info.memory == "pitch2d" and (count != 2 or bool(info.layers)),
        "wrap and mirror need normalized coordinates": wrapped and not info.normalized,
        "a linear filter needs floating-point values (read=normalized)": info.filter == "linear" and not info.gives_floats,
        "read=normalized is for elements of 8 and 16 bits": info.read == "normalized" and (info.type[0] == "f" or info.dtype.itemsize > 2),
    }
    for message, broken in rules.items():
        if broken:
            raise UsageError(f"texture: {message}")


# --- the command line ---------------------------------------------------------------------------------------------------


def parse_options(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `filter=linear`, `normalized=1` and so on. Raises UsageError with what is wrong."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in (*_CHOICES, *_NUMBERS):
            raise UsageError(f"unknown option '{text.strip()}' of a texture; expected {', '.join((*_CHOICES, *_NUMBERS))}")
        try:
            found[name] = int(value) if name in _NUMBERS else value
        except ValueError:
            raise UsageError(f"expected a number for {name}, got '{value}'") from None
    return found
