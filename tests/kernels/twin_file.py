"""Reads the header of a kernel file in twins/ or clean/: how to launch it, and what a run must report.

The header is the block of `//` lines at the top of the file. Lines of the form `// key: value` are the specification,
the others are prose. Keys:

    launch:   grid=2x2 block=128 smem=512 arch=sm_90      (smem and arch may be left out: 0 and sm_80)
    arg:      NAME TYPE[SHAPE]=FILL  or  NAME TYPE=VALUE  (one line per kernel parameter, in order)
    arg:      NAME tma:TYPE[SHAPE]=FILL,box=AxB,...       a tensor map of such a buffer, by value; options as in `consan check --arg`
    arg:      NAME tex:OTHER,memory=linear,...             a texture object over the argument OTHER; options as in `consan check --arg`
    arg:      NAME tensor:TYPE[SHAPE]=FILL                a struct of its address, sizes and strides, by value, as nvFuser's
    expect:   KIND [HAZARD] [@marker [@marker]] severity=error
    allow:    the same; a finding that may appear in the racy twin beside the expected ones
    result:   NAME = NumPy expression over the initial arguments; what the correct kernel leaves in NAME
    backends: cpu                                         (why not the GPU is said in the prose)
    policy:   isa                                         (of both twins; `default` if left out)

KIND may name alternatives (`data-race|missing-wait`) where the specification itself lets luck decide. RAW and WAR stand for
each other: a hazard is as observed. A marker `@write` stands for every source line that carries the comment `/*@write*/`.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from consan import Kernel, TensorMap, Texture
from consan.checker.repairs import fixes
from consan.launching.placement import ArrayStruct, extents_of
from consan.tensormap.argument import make, parse_options
from consan.textures import argument as textures
from consan.toolchain import nvrtc
from consan.toolchain.cache import Cache, key

Array = npt.NDArray[Any]

# Names the folder of compiled kernels (tests/conftest.py). Not CONSAN_*: consan warns of those that it does not know.
COMPILED = "COMPILED_TWINS"
MINIMAL = ("--minimal",)  # of NVRTC, without textures and the device runtime: the PTX of these kernels is the same, and takes a third less
KEYS = ("launch", "arg", "expect", "allow", "result", "backends", "policy")
TYPES = {
    "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "f16": np.float16, "u32": np.uint32,
    "i32": np.int32, "f32": np.float32, "u64": np.uint64, "i64": np.int64, "f64": np.float64,
}  # fmt: skip

_HEADER = re.compile(r"// ([a-z]+): +(.*)$")
_ARG = re.compile(r"(\w+) ([a-z]\d+)(?:\[([\d,]+)\])?=(\S+)$")
_MARKER = re.compile(r"/\*@(\w+)\*/")


@dataclass(frozen=True)
class Expectation:
    """One finding that a run must show (`expect`) or may show (`allow`)."""

    kinds: tuple[str, ...]
    hazard: str | None
    markers: tuple[str, ...]
    severity: str | None


@dataclass
class KernelFile:
    """One kernel file: its launch, its arguments by name, and its expectations."""

    path: Path
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    smem: int = 0
    arch: str = "sm_80"
    args: dict[str, Array | np.generic] = field(default_factory=dict)
    expected: list[Expectation] = field(default_factory=list)
    allowed: list[Expectation] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    backends: tuple[str, ...] = ("cpu", "gpu")
    markers: dict[str, set[int]] = field(default_factory=dict)
    maps: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    structs: set[str] = field(default_factory=set)
    textures: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    policy: str = "default"

    def fresh_args(self) -> dict[str, Array | np.generic]:
        """Copies of the arguments as they are before a launch."""
        return {name: value.copy() for name, value in self.args.items()}

    def parameters(self, args: dict[str, Array | np.generic]) -> list[Array | np.generic | TensorMap | Texture | ArrayStruct]:
        """What the kernel is launched with: the arguments, those that are tensors as their maps or structs."""
        return [self.texture_of(name, args) if name in self.textures else self.parameter(name, value) for name, value in args.items()]

    def texture_of(self, name: str, args: dict[str, Any]) -> Texture:
        """The texture of the argument `name`."""
        other, options = self.textures[name]
        return Texture(args[other], **options)

    def parameter(self, name: str, value: Any) -> Any:
        """What stands for an argument."""
        if name in self.structs:
            return ArrayStruct(value, extents_of(value.shape))
        return self.map_of(name, value) if name in self.maps else value

    def map_of(self, name: str, array: Any) -> TensorMap:
        """The tensor map of the argument `name` over `array`."""
        dtype, options = self.maps[name]
        return make(array, dtype, options)

    def reference(self, name: str) -> Array:
        """What the correct kernel leaves in the argument `name`."""
        return np.asarray(eval(self.results[name], {"np": np, **self.fresh_args()}))


def kernel(path: Path, racy: bool) -> Kernel:
    """The kernel at `path`, with its fault or without. Each text is compiled once in a run of the tests, by whoever needs it first."""
    with mock.patch.object(nvrtc, "compile_ptx", _compiled):
        return Kernel(path, entry="kernel", arch=read(path).arch, defines={"RACY": 1} if racy else {})


def _compiled(text: str, *, compile_ptx: Any = nvrtc.compile_ptx, **options: Any) -> nvrtc.CompileResult:
    """`compile_ptx`, through the folder that all processes of a run share (tests/conftest.py)."""
    if COMPILED not in os.environ:
        return compile_ptx(text, **options)
    ptx = Cache(Path(os.environ[COMPILED])).fetch_text(key(text, repr(options)), lambda: compile_ptx(text, **options, options=MINIMAL).ptx)
    return nvrtc.CompileResult(ptx, "")


@contextlib.contextmanager
def fixes_of_some(path: Path) -> Iterator[None]:
    """A verified fix is sought for one racy twin in four: that takes longer than all else of a launch."""
    with mock.patch.object(fixes, "MOST_PAIRS", 0 if zlib.crc32(path.stem.encode()) % 4 else fixes.MOST_PAIRS):
        yield


def read(path: Path) -> KernelFile:
    """The kernel file at `path`; a header line that is not understood is an error."""
    kernel = KernelFile(path)
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        for marker in _MARKER.findall(line):
            kernel.markers.setdefault(marker, set()).add(number)
    for line in lines:
        if not line.startswith("//"):
            break
        if match := _HEADER.match(line):
            _read_line(kernel, match[1], match[2].strip())
    for expectation in kernel.expected + kernel.allowed:
        unknown = set(expectation.markers) - set(kernel.markers)
        if unknown:
            raise ValueError(f"{path.name}: no line carries {sorted(unknown)}")
    return kernel


def _read_line(kernel: KernelFile, key: str, value: str) -> None:
    if key not in KEYS:
        raise ValueError(f"{kernel.path.name}: unknown header key {key!r}")
    if key == "launch":
        _read_launch(kernel, value)
    elif key == "arg":
        _read_argument(kernel, value)
    elif key == "result":
        name, expression = value.split(" = ", 1)
        kernel.results[name] = expression
    elif key == "backends":
        kernel.backends = tuple(value.split())
    elif key == "policy":
        kernel.policy = value
    else:
        (kernel.expected if key == "expect" else kernel.allowed).append(parse_expectation(value))


def _read_launch(kernel: KernelFile, value: str) -> None:
    for word in value.split():
        name, setting = word.split("=")
        if name in ("grid", "block"):
            setattr(kernel, name, _dim3(setting))
        elif name == "smem":
            kernel.smem = int(setting)
        elif name == "arch":
            kernel.arch = setting
        else:
            raise ValueError(f"{kernel.path.name}: unknown launch setting {name!r}")


def _read_argument(kernel: KernelFile, text: str) -> None:
    name, _, rest = text.partition(" ")
    if rest.startswith("tma:"):
        shape, _, given = rest.removeprefix("tma:").partition("=")
        fill, *options = given.split(",", 1)
        buffer, parsed = f"{shape}={fill}", parse_options(options[0].split(",")) if options else {}
        kernel.maps[name] = (buffer.partition("[")[0], parsed)
        text = f"{name} {buffer}"
    if rest.startswith("tex:"):
        other, *options = rest.removeprefix("tex:").split(",")
        kernel.textures[name] = (other, textures.parse_options(options))
        text = f"{name} u64=0"
    if rest.startswith("tensor:"):
        kernel.structs.add(name)
        text = f"{name} {rest.removeprefix('tensor:')}"
    name, kernel.args[name] = parse_argument(text)


def _dim3(text: str) -> tuple[int, int, int]:
    x, y, z = [*(int(part) for part in text.split("x")), 1, 1][:3]
    return (x, y, z)


def parse_argument(text: str) -> tuple[str, Array | np.generic]:
    """`x f32[4,8]=arange` or `n i32=4` as (name, value). Random values are small integers: sums of them are exact."""
    match = _ARG.match(text)
    if match is None:
        raise ValueError(f"not an argument: {text!r}")
    name, kind, shape, fill = match.groups()
    dtype = TYPES[kind]
    if shape is None:
        return name, dtype(fill)
    dims = tuple(int(part) for part in shape.split(","))
    count = int(np.prod(dims))
    if fill == "zeros":
        flat = np.zeros(count)
    elif fill == "arange":
        flat = np.arange(count)
    elif fill == "random":
        flat = np.random.default_rng(zlib.crc32(name.encode())).integers(0, 8, count)
    else:
        raise ValueError(f"not a way to fill a buffer: {fill!r}")
    return name, flat.astype(dtype).reshape(dims)


def parse_expectation(text: str) -> Expectation:
    """`data-race RAW @write @read severity=error` as an Expectation."""
    kinds, *words = text.split()
    markers = tuple(word[1:] for word in words if word.startswith("@"))
    hazards = [word for word in words if word in ("RAW", "WAR", "WAW")]
    severities = [word.split("=")[1] for word in words if word.startswith("severity=")]
    if len(markers) + len(hazards) + len(severities) != len(words):
        raise ValueError(f"not an expectation: {text!r}")
    return Expectation(tuple(kinds.split("|")), hazards[0] if hazards else None, markers, severities[0] if severities else None)
