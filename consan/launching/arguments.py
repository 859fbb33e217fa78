"""The values of a launch as text: `--arg SPEC` (tutorials/guide/kernels.md), and X[,Y[,Z]] for grids, blocks and clusters.

    f32[65536]=random       a buffer: type, shape, and random | zeros | ones | arange | FILE.npy | FILE.bin
    i32=4096   f32=1.5      a scalar, passed by value
    bytes=0a0b0c            a struct, passed by value
    tma:f16[64,256]=random,box=8x64,swizzle=128    a tensor map over such a buffer, passed by value; further options are
                            interleave, l2, oob (zero or nan), element_strides (1x2), dtype (tf32, e4m3, ...), and for im2col
                            lower, upper (-1x-1), channels and pixels instead of box: those of consan.TensorMap
    tex:f32[64,64]=random,filter=linear    a texture object over such a buffer, on the virtual machine; options: memory, filter, address,
                            normalized, read, channels, shape: those of consan.Texture
    tensor:f32[128,64]=random,index=i64,strides=64x1    a struct of the address of such a buffer, its sizes and its strides in elements,
                            passed by value: nvFuser's Tensor<float, 2, 2>. index: their type, i32 or i64 [i32]. strides: [contiguous]
    struct:tma:f16[64,256]=random,box=8x64;f32[64]=zeros;i32=4@200    a struct of any of these, passed by value (members.py)

`random` is seeded, with a separate stream for each argument. Floats are uniform in [-1, 1). Integers take 256 values around
or above zero, so that histograms and indices stay in a useful range. bf16 has no NumPy type: such buffers are uint16 words.

Whether the arguments fit the kernel's parameters is checked in consan/launching/signature.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from consan import late
from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.launching.members import PREFIX, MembersSpec, members_of
from consan.launching.placement import ArrayStruct, PackedStruct, extents_of
from consan.launching.scalars import FLOATS, TYPES, check_type, hex_bytes, scalar, to_bf16
from consan.tensormap.argument import TensorMap, make, parse_options
from consan.tensormap.description import NBYTES
from consan.textures import argument as textures

Array = npt.NDArray[Any]
Dim3 = tuple[int, int, int]

_LARGEST: Final = 1 << 40  # bytes: a larger buffer is a typing error, and would end as a bare MemoryError

_BUFFER = re.compile(r"(?P<type>\w+)\[(?P<shape>[^\]]*)\]")
EXPECTED: Final = "expected TYPE[N]=random|zeros|ones|arange|FILE.npy|FILE.bin, TYPE=VALUE, or bytes=HEX"

EXPECTED_STRUCT: Final = "expected tensor:TYPE[N,M]=random|zeros|ones|arange|FILE.npy|FILE.bin[,index=i64][,strides=AxB]"
EXPECTED_MAP: Final = "expected tma:TYPE[N,M]=random|zeros|ones|arange|FILE.npy|FILE.bin,box=AxB[,swizzle=128]..."
EXPECTED_TEXTURE: Final = "expected tex:TYPE[N,M]=random|zeros|ones|arange|FILE.npy|FILE.bin[,filter=linear]..."


class ArgSpec(Protocol):
    """One `--arg`: an array to copy to the device, a tensor map of one, or the bytes of a parameter."""

    @property
    def text(self) -> str:
        """The SPEC as given."""

    @property
    def parameter_bytes(self) -> int:
        """Size of the kernel parameter in bytes."""

    def materialise(self, seed: int) -> Array | ArrayStruct | PackedStruct | TensorMap | textures.Texture | bytes:
        """A new array for a buffer, a struct, a tensor map or a texture; bytes for a value."""


@dataclass(frozen=True)
class BufferSpec:
    """`TYPE[SHAPE]=INIT`: a buffer. The parameter is its address."""

    text: str
    index: int
    type: str
    shape: tuple[int, ...]
    init: str
    parameter_bytes: int = 8

    def materialise(self, seed: int) -> Array:
        """A new array. The same seed gives the same values."""
        try:
            return np.ascontiguousarray(self._filler()(self, seed).reshape(self.shape))
        except UsageError as error:
            raise _error(self.index, self.text, str(error)) from None
        except MemoryError:
            raise _error(self.index, self.text, "there is not enough memory for the buffer") from None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of an element (bf16: its raw words)."""
        return np.dtype(TYPES[self.type])

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def _filler(self) -> Callable[[BufferSpec, int], Array]:
        return FILLERS.get(self.init) or _FILES[Path(self.init).suffix]


@dataclass(frozen=True)
class ValueSpec:
    """`TYPE=VALUE` or `bytes=HEX`: passed by value."""

    text: str
    index: int
    data: bytes
    type: str = "bytes"

    @property
    def parameter_bytes(self) -> int:
        """Size in bytes."""
        return len(self.data)

    def materialise(self, seed: int) -> bytes:
        """The value. The seed is not used."""
        return self.data


@dataclass(frozen=True)
class TensorSpec:
    """`tma:BUFFER,box=...`: a tensor map of a buffer, passed by value."""

    text: str
    index: int
    buffer: BufferSpec
    options: Mapping[str, Any]
    parameter_bytes: int = NBYTES

    def materialise(self, seed: int) -> TensorMap:
        """A map of a new array."""
        return self.map_of(self.buffer.materialise(seed))

    def map_of(self, array: Array) -> TensorMap:
        """A map of an array of the buffer's shape and type."""
        return make(array, self.buffer.type, self.options)


@dataclass(frozen=True)
class TextureSpec:
    """`tex:BUFFER,...`: a texture object over a buffer, passed by its handle."""

    text: str
    index: int
    buffer: BufferSpec
    options: Mapping[str, Any]
    parameter_bytes: int = textures.HANDLE_BYTES

    def materialise(self, seed: int) -> textures.Texture:
        """A texture of a new array."""
        return textures.Texture(self.buffer.materialise(seed), **self.options)


@dataclass(frozen=True)
class StructSpec:
    """`tensor:BUFFER,...`: a struct of a buffer's address, its sizes and its strides, passed by value."""

    text: str
    index: int
    buffer: BufferSpec
    extents: bytes

    @property
    def parameter_bytes(self) -> int:
        """Size of the struct in bytes."""
        return 8 + len(self.extents)

    def materialise(self, seed: int) -> ArrayStruct:
        """The struct over a new array."""
        return ArrayStruct(self.buffer.materialise(seed), self.extents)


def parse_args(specs: Sequence[str]) -> list[ArgSpec]:
    """All `--arg` texts in order."""
    return [parse_arg(text, index) for index, text in enumerate(specs, 1)]


def parse_arg(text: str, index: int = 1) -> ArgSpec | MembersSpec:
    """One SPEC; UsageError names the argument and what was expected."""
    head, equals, value = text.partition("=")
    head, value = head.strip(), value.strip()
    try:
        if text.startswith(PREFIX):
            return members_of(text, index, parse_arg)
        if head.startswith("tma:"):
            return _tensor(text, index, head.removeprefix("tma:"), value)
        if head.startswith("tex:"):
            return _texture(text, index, head.removeprefix("tex:"), value)
        if head.startswith("tensor:"):
            return _struct(text, index, head.removeprefix("tensor:"), value)
        if not equals or not value:
            raise UsageError(EXPECTED)
        if head == "bytes":
            return ValueSpec(text, index, hex_bytes(value))
        return _buffer(text, index, head, value) if "[" in head else ValueSpec(text, index, scalar(head, value), head)
    except UsageError as error:
        raise _error(index, text, str(error), type(error)) from None


def _error(index: int, text: str, message: str, kind: type[UsageError] = UsageError) -> UsageError:
    return kind(f"--arg {index} '{text}': {message}")


# --- buffers -----------------------------------------------------------------------------------------------------------


def _buffer(text: str, index: int, head: str, init: str) -> BufferSpec:
    match = _BUFFER.fullmatch(head)
    if match is None:
        raise UsageError(EXPECTED)
    check_type(match["type"])
    shape = _shape(match["shape"])
    if prod(shape) * np.dtype(TYPES[match["type"]]).itemsize > _LARGEST:
        raise UsageError("the buffer is larger than 1 TiB")
    if init not in FILLERS and Path(init).suffix not in _FILES:
        raise UsageError(f"expected {', '.join(FILLERS)}, FILE.npy or FILE.bin after '=', got '{init}'")
    return BufferSpec(text, index, match["type"], shape, init)


def _tensor(text: str, index: int, head: str, value: str) -> TensorSpec:
    init, *options = value.split(",")
    if "[" not in head or not init:
        raise UsageError(EXPECTED_MAP)
    spec = TensorSpec(text, index, _buffer(text, index, head, init.strip()), parse_options(options))
    spec.map_of(np.broadcast_to(np.zeros((), spec.buffer.dtype), spec.buffer.shape))  # raises errors of the map before memory is allocated
    return spec


def _texture(text: str, index: int, head: str, value: str) -> TextureSpec:
    init, *options = value.split(",")
    if "[" not in head or not init:
        raise UsageError(EXPECTED_TEXTURE)
    spec = TextureSpec(text, index, _buffer(text, index, head, init.strip()), textures.parse_options(options))
    textures.Texture(np.broadcast_to(np.zeros((), spec.buffer.dtype), spec.buffer.shape), **spec.options)  # raises its errors
    return spec


def _struct(text: str, index: int, head: str, value: str) -> StructSpec:
    init, *words = value.split(",")
    given = dict(word.partition("=")[::2] for word in words)
    shape = _BUFFER.fullmatch(head)
    if shape is None or not init or not given.keys() <= {"index", "strides"} or given.get("index", "i32") not in ("i32", "i64"):
        raise UsageError(EXPECTED_STRUCT)
    buffer = _buffer(text, index, head, init)
    strides = [_extent(word) for word in given["strides"].split("x")] if "strides" in given else None
    return StructSpec(text, index, buffer, extents_of(buffer.shape, strides, TYPES[given.get("index", "i32")]))


def _extent(word: str) -> int:
    if not word.isdecimal():
        raise UsageError(EXPECTED_STRUCT)
    return int(word)


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part, 0) for part in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise UsageError(f"expected a shape such as [4096] or [64,64], got '[{text}]'")
    return shape


def _typed(spec: BufferSpec, values: Array) -> Array:
    return to_bf16(values) if spec.type == "bf16" else values.astype(spec.dtype)


def _random(spec: BufferSpec, seed: int) -> Array:
    # abs: a generator takes no negative seed. It is harmless that -1 and 1 give the same stream.
    generator = np.random.default_rng([abs(seed), spec.index])
    if spec.type in FLOATS:
        return _typed(spec, generator.random(spec.size, np.float32) * np.float32(2) - np.float32(1))
    low = -128 if spec.type == "i8" else 0
    return generator.integers(low, low + 256, spec.size).astype(spec.dtype)


def _arange(spec: BufferSpec, seed: int) -> Array:
    if spec.type in FLOATS:
        return _typed(spec, np.arange(spec.size, dtype=np.float64))
    return np.arange(spec.size).astype(spec.dtype)  # wraps around in small types


FILLERS: Final[dict[str, Callable[[BufferSpec, int], Array]]] = {
    "random": _random,
    "zeros": lambda spec, seed: np.zeros(spec.size, spec.dtype),
    "ones": lambda spec, seed: _typed(spec, np.ones(spec.size, np.float32)),
    "arange": _arange,
}


def _load_npy(spec: BufferSpec, seed: int) -> Array:
    try:
        with Path(spec.init).open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)  # unlike np.load, takes no archives
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {spec.init}: {_reason(error)}") from None
    if spec.type == "bf16" and array.dtype == np.float32:
        array = to_bf16(array)
    if array.dtype != spec.dtype:
        raise UsageError(f"{spec.init} holds {array.dtype}, expected {spec.dtype} for {spec.type}")
    if array.size != spec.size:
        raise UsageError(f"{spec.init} holds {array.size:,} elements, expected {spec.size:,}")
    loaded: Array = array
    return loaded


def _load_bin(spec: BufferSpec, seed: int) -> Array:
    try:
        data = Path(spec.init).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {spec.init}: {_reason(error)}") from None
    expected = spec.size * spec.dtype.itemsize
    if len(data) != expected:
        raise UsageError(f"{spec.init} holds {len(data):,} bytes, expected {expected:,}")
    loaded: Array = np.frombuffer(data, spec.dtype).copy()
    return loaded


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


_FILES: Final[dict[str, Callable[[BufferSpec, int], Array]]] = {".npy": _load_npy, ".bin": _load_bin}


# --- dimensions --------------------------------------------------------------------------------------------------------

# Limits of every architecture from sm_75 on (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
_GRID_LIMITS: Final = ((1 << 31) - 1, 65535, 65535)
_BLOCK_LIMITS: Final = (1024, 1024, 64)
_BLOCK_THREADS: Final = 1024
_CLUSTER_CTAS: Final = 16


def parse_dim3(option: str, text: str) -> Dim3:
    """X[,Y[,Z]], each at least 1."""
    try:
        values = [int(part, 0) for part in text.split(",")]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise UsageError(f"{option}: expected X[,Y[,Z]] with numbers above zero, got '{text}'")
    return late.ptx.three_extents(values)


def check_dimensions(grid: Dim3, block: Dim3, cluster: Dim3) -> None:
    """Refuse dimensions that no GPU launches: a UsageError, not a finding."""
    _within("--grid", grid, _GRID_LIMITS)
    _within("--block", block, _BLOCK_LIMITS)
    if prod(block) > _BLOCK_THREADS:
        raise UsageError(f"--block: {prod(block):,} threads, expected at most {_BLOCK_THREADS:,}")
    if prod(cluster) > _CLUSTER_CTAS:
        raise UsageError(f"--cluster: {prod(cluster)} CTAs, expected at most {_CLUSTER_CTAS}")
    if any(extent % size for extent, size in zip(grid, cluster, strict=True)):
        raise UsageError(f"--grid: {_joined(grid)} CTAs is not a whole number of clusters of {_joined(cluster)}")


def _within(option: str, value: Dim3, limits: Dim3) -> None:
    if any(extent > limit for extent, limit in zip(value, limits, strict=True)):
        raise UsageError(f"{option}: {_joined(value)} is beyond the limit of {_joined(limits)}")


def _joined(value: Dim3) -> str:
    return ",".join(map(str, value))
