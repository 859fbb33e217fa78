"""A texture object as the host's code describes it: what source/consan_textures.h hands over, in the words of `TextureInfo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from consan._errors import UsageError
from consan.textures.argument import refuse_what_cuda_refuses
from consan.textures.description import TYPES, TextureInfo

# In the order of the runtime's enumerations (driver_types.h, texture_types.h).
_KINDS: Final = ("s", "u", "f")
_MEMORIES: Final = {0: "array", 2: "linear", 3: "pitch2d"}
_ADDRESSES: Final = ("wrap", "clamp", "mirror", "border")
_FILTERS: Final = ("point", "linear")


_FIELDS: Final = (
    *("kind", "bits", "channels", "width", "height", "depth", "layered", "cube", "memory", "filter", "x", "y", "z"),
    *("normalized", "read", "row", "address"),
)  # extents are 0 where there is no such dimension; a row is in bytes


def described_texture(numbers: Sequence[int]) -> TextureInfo:
    """The texture. Raises UsageError for what CUDA would refuse, and for what the virtual machine does not have."""
    if not numbers:
        raise UsageError("mipmaps, views of a resource, sRGB and colours of the border are not there")
    given = dict(zip(_FIELDS, numbers[: len(_FIELDS)], strict=True))
    element = f"{_KINDS[given['kind']]}{given['bits']}" if given["kind"] < len(_KINDS) else "?"
    if element not in TYPES or given["channels"] not in (1, 2, 4):
        raise UsageError(f"{given['channels']} channels of {given['bits']} bits are not there")
    extents = tuple(each for each in (given["width"], given["height"], 0 if given["layered"] else given["depth"]) if each)
    linear = _MEMORIES[given["memory"]] == "linear"
    info = TextureInfo(
        element,
        given["channels"],
        extents,
        given["address"],
        layers=given["depth"] if given["layered"] else 0,
        cube=bool(given["cube"]),
        memory=_MEMORIES[given["memory"]],
        filter="point" if linear else _FILTERS[given["filter"]],
        addresses=tuple(_address(given[each], normalized=bool(given["normalized"])) for each in "xyz"[: len(extents)]),
        normalized=bool(given["normalized"]) and not linear,
        read="normalized" if given["read"] and element[0] != "f" else "element",
        row=given["row"] * 8 // (given["channels"] * given["bits"]),
    )
    refuse_what_cuda_refuses(info)
    return info


def _address(mode: int, *, normalized: bool) -> str:
    """An addressing mode. Those that repeat are `clamp` without normalized coordinates (`cudaTextureDesc`)."""
    name = _ADDRESSES[mode]
    return name if normalized or name == "border" else "clamp"
