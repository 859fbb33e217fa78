"""Texture and surface objects of the runtime and of the driver ("Texture Object Management", "Surface Object Management").

A fetch from an array has no address. So a launch that is given a texture of one, or a surface, is compared with work of other streams as an
operation before it: a texture reads the whole array. The bytes of a surface that a launch uses are not known, and what may run beside it is
not judged.

Not handled: levels of detail, borders of another colour than zero, views, samplers of several samples.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver
from consan.libcuda.memory.array_calls import DeviceArray, Elements
from consan.textures.argument import refuse_what_cuda_refuses
from consan.textures.description import SurfaceInfo, TextureInfo

_RESOURCE: Final = struct.Struct("<i4xQ20s4x3Q")  # cudaResourceDesc: kind; array or address; channels; bytes, or width, height, pitch
_OF_DRIVER: Final = struct.Struct("<i4xQ2I3Q")  # CUDA_RESOURCE_DESC: with a format and a number of channels
_TEXTURE: Final = struct.Struct("<3i2ii4fi")  # cudaTextureDesc: address modes, filter, read mode, sRGB, border, normalised
_BY_DRIVER: Final = struct.Struct("<4iI2i3f4f")  # CUDA_TEXTURE_DESC: address modes, filter, flags, of levels of detail, border
_AS_INTEGERS, _NORMALIZED, _SRGB = 1, 2, 16  # CU_TRSF_*
_ARRAY, _LINEAR, _PITCHED = 0, 2, 3
_MODES: Final = ("wrap", "clamp", "mirror", "border")
_WITHOUT_NORMALS: Final = {"wrap": "clamp", "mirror": "clamp"}  # these modes are for normalised coordinates
_FIRST: Final = 0x7EC00000  # a handle is a number that parameters hardly have otherwise


@dataclass(frozen=True)
class LaunchObject:
    """A texture or a surface object of an array: the array, and whether it is a surface."""

    array: DeviceArray
    is_surface: bool


def _textures(driver: StandInDriver) -> dict[int, Any]:
    found: dict[int, Any] = driver.session.backend.machine.arena.textures
    return found


@dataclass(frozen=True)
class TextureResource:
    """A cudaResourceDesc, or a CUDA_RESOURCE_DESC. `elements`: those of linear memory."""

    kind: int
    object: int
    elements: Callable[[], Elements]
    width: int  # or bytes
    height: int
    pitch: int


def _of_runtime(driver: StandInDriver, place: int) -> TextureResource:
    kind, object_, channels, *sizes = _RESOURCE.unpack(driver.memory.read(place, _RESOURCE.size))
    return TextureResource(kind, object_, lambda: Elements.described(channels), *sizes)


def _of_driver(driver: StandInDriver, place: int) -> TextureResource:
    kind, object_, code, channels, *sizes = _OF_DRIVER.unpack(driver.memory.read(place, _OF_DRIVER.size))
    return TextureResource(kind, object_, lambda: Elements.formatted(code, channels), *sizes)


def _memory(driver: StandInDriver, given: TextureResource) -> tuple[dict[str, Any], DeviceArray | None]:
    """The part of a texture that its memory says, and its array. Raises CallFailed."""
    kind, object_, width, height, pitch = given.kind, given.object, given.width, given.height, given.pitch
    if kind == _ARRAY:
        array: DeviceArray = driver.of(object_, DeviceArray)
        return {
            "elements": array.elements,
            "address": array.address,
            "extents": array.extents,
            "layers": array.layers,
            "cube": array.cube,
        }, array
    if kind not in (_LINEAR, _PITCHED):
        raise CallFailed(calls.NOT_SUPPORTED, "consan's stand-in has no textures of several levels of detail")
    elements = given.elements()
    if kind == _LINEAR:
        return {"elements": elements, "address": object_, "extents": (width // elements.nbytes,), "memory": "linear"}, None
    row = pitch // elements.nbytes
    return {"elements": elements, "address": object_, "extents": (width, height), "memory": "pitch2d", "row": row}, None


@dataclass(frozen=True)
class TextureReading:
    """How a texture is read. `unseen`: what is not served."""

    modes: tuple[int, ...]
    filtered: int
    fractions: int  # integers are read as fractions of their largest one
    normalized: int
    unseen: bool


@serves(">Q Q Q Q", "_cudaCreateTextureObject")
def _texture(driver: StandInDriver, resource: int, description: int, view: int) -> int:
    *modes, filtered, read, srgb, red, green, blue, alpha, normalized = _TEXTURE.unpack(driver.memory.read(description, _TEXTURE.size))
    how = TextureReading(tuple(modes), filtered, read, normalized, bool(view or srgb or any((red, green, blue, alpha))))
    return _made(driver, _of_runtime(driver, resource), how)


@serves(">Q Q Q Q", "cuTexObjectCreate")
def _texture_of_driver(driver: StandInDriver, resource: int, description: int, view: int) -> int:
    *modes, filtered, flags, _, _, _, _, _, red, green, blue, alpha = _BY_DRIVER.unpack(driver.memory.read(description, _BY_DRIVER.size))
    given = _of_driver(driver, resource)
    element = (driver.of(given.object, DeviceArray).elements if given.kind == _ARRAY else given.elements()).type
    fractions = not flags & _AS_INTEGERS and element[1:] != "32"
    unseen = bool(view or flags & _SRGB or any((red, green, blue, alpha)))
    return _made(driver, given, TextureReading(tuple(modes), filtered, fractions, flags & _NORMALIZED, unseen))


def _made(driver: StandInDriver, given: TextureResource, reading: TextureReading) -> int:
    found, array = _memory(driver, given)
    if reading.unseen:
        raise CallFailed(calls.NOT_SUPPORTED, "consan's stand-in has no views, no sRGB and no colours of the border")
    elements, words = found.pop("elements"), [_MODES[mode] for mode in reading.modes[: len(found["extents"])]]
    addresses = tuple(words if reading.normalized else [_WITHOUT_NORMALS.get(word, word) for word in words])
    how: dict[str, Any] = {"filter": ("point", "linear")[reading.filtered], "read": ("element", "normalized")[reading.fractions]}
    how["normalized"] = bool(reading.normalized)
    if elements.type[0] == "f":
        how["read"] = "element"
    info = TextureInfo(elements.type, elements.channels, addresses=addresses, **found, **how)
    refuse_what_cuda_refuses(info)
    return _kept(driver, info, None if array is None else LaunchObject(array, is_surface=False))


@serves(">Q Q", "_cudaCreateSurfaceObject")
def _surface(driver: StandInDriver, resource: int) -> int:
    return _made_surface(driver, _of_runtime(driver, resource))


@serves(">Q Q", "cuSurfObjectCreate")
def _surface_of_driver(driver: StandInDriver, resource: int) -> int:
    return _made_surface(driver, _of_driver(driver, resource))


def _made_surface(driver: StandInDriver, given: TextureResource) -> int:
    array = _memory(driver, given)[1]
    if array is None:
        raise CallFailed(calls.INVALID_VALUE)
    info = SurfaceInfo(array.address, array.extents[0] * array.elements.nbytes, array.extents[1:], array.layers)
    handle = _kept(driver, None, LaunchObject(array, is_surface=True))
    driver.session.backend.machine.arena.surface_objects[handle & 0xFFFF] = info
    return handle


def _kept(driver: StandInDriver, info: TextureInfo | None, of_launch: LaunchObject | None) -> int:
    handle = _FIRST + driver.made(info) // 16
    if info is not None:
        _textures(driver)[handle] = info
    if of_launch is not None:
        driver.special.objects[handle] = of_launch
    return handle


@serves("Q", "_cudaDestroyTextureObject", "_cudaDestroySurfaceObject", "cuTexObjectDestroy", "cuSurfObjectDestroy")
def _destroy(driver: StandInDriver, handle: int) -> None:
    _textures(driver).pop(handle, None)
    driver.special.objects.pop(handle, None)


def before_launch(driver: StandInDriver, words: Iterator[int], stream: Any) -> None:
    """A launch has these words as parameters: what it does to arrays comes before it in its stream."""
    if not driver.special.objects:
        return
    for found in {driver.special.objects[word] for word in words if word in driver.special.objects}:
        array = found.array
        reads = [] if found.is_surface else [(array.address, driver.view(array.address, array.nbytes))]
        name = "the accesses of a surface" if found.is_surface else "the fetches from a texture"
        driver.session.streams.operated(name, stream, reads, [], known=not found.is_surface)
