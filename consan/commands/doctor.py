"""`consan doctor`: what consan found on this machine, what it would use, and how to install what is missing.

Every probe gives one row or a few. A probe that fails gives a row, too, never an exception. The status is 0 if kernels can run on at least
one backend, else 2.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import IO, Final

from rich.console import Console
from rich.text import Text

from consan import config, late, options
from consan.commands.parts.output import add_output, chosen_output, put
from consan.dataclass import dataclass
from consan.instrument.isa import features
from consan.native.build import INTERPOSER
from consan.reports.counts import plural
from consan.toolchain.extras import install

OK: Final = "ok"
MISSING: Final = "missing"
INFO: Final = ""
_STYLE: Final = {OK: "green", MISSING: "yellow", INFO: "dim"}

# Advice is a line for the shell, with its remarks behind #: who pastes it runs the command.
INSTALL_CUPY: Final = "pip install cupy-cuda13x  # cupy-cuda12x for CUDA 12; to sanitize CuPy programs on the GPU"


@dataclass(frozen=True)
class Line:
    """One probe: section, name, state, what was found, the command that helps if it is missing."""

    section: str
    name: str
    state: str
    found: str
    hint: str = ""


class DoctorCommand:
    """Describe the environment."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        add_output(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Probe everything and print it."""
        chosen_output(args)
        rows = [row for probe in PROBES for row in _safely(probe)]
        text = io.StringIO()
        _print(rows, sys.stdout if args.file_out is None else text)
        status = 0 if args.file_out is None else put(args, text.getvalue())
        return status if any(row.section == "backends" and row.state == OK for row in rows) else 2


def _safely(probe: Callable[[], Iterator[Line]]) -> list[Line]:
    try:
        return list(probe())
    except Exception as error:  # a broken library must not break the diagnosis
        section = (probe.__name__ or "").strip("_")
        return [Line(section, section, MISSING, f"{type(error).__name__}: {error}")]


def _print(rows: list[Line], file: IO[str]) -> None:
    """One line per row, never cut or wrapped: users copy the paths."""
    width = max(len(row.name) for row in rows)
    console = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=True)
    section = ""
    for row in rows:
        if row.section != section:
            console.print(Text(row.section, "bold"))
        section = row.section
        hint = f" - {row.hint}" if row.hint and row.state == MISSING else ""
        console.print(
            Text.assemble(f"  {row.name:<{width}}  ", (f"{row.state:<{len(MISSING)}}", _STYLE[row.state]), f"  {row.found}{hint}")
        )


# --- probes ------------------------------------------------------------------------------------------------------------

_PACKAGES: Final = {
    "consan": (("consan",), ""),
    "numpy": (("numpy",), "pip install numpy"),
    "cupy": (("cupy-cuda13x", "cupy-cuda12x", "cupy"), INSTALL_CUPY),
    "triton": (("triton",), ""),
    "numba": (("numba",), ""),
    "numba-cuda": (("numba-cuda",), ""),
    "cuda.core": (("cuda-core",), ""),
    "numba-cuda-mlir": (("numba-cuda-mlir",), ""),
    "CuTe DSL": (("nvidia-cutlass-dsl",), ""),
    "Warp": (("warp-lang",), ""),
    "tilelang": (("tilelang",), ""),
    "JAX": (("jax",), ""),
    "JAX's CUDA plugin": (("jax-cuda13-plugin", "jax-cuda12-plugin"), ""),
    "Helion": (("helion",), ""),
    "torch": (("torch",), ""),
}


def _versions() -> Iterator[Line]:
    yield Line("versions", "python", OK, f"{platform.python_version()} on {platform.platform(terse=True)}")
    yield Line("versions", "PTX ISA", INFO, f"rules for {features.known_versions()}; kernels of other versions are incomplete")
    for name, (distributions, hint) in _PACKAGES.items():
        found = next(filter(None, map(_version, distributions)), None)
        yield Line("versions", name, OK if found else MISSING if hint else INFO, found or "not installed", hint)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


_NEEDED: Final = ("nvrtc", "nvjitlink", "headers")  # the rest are alternatives and extras


def _toolchain() -> Iterator[Line]:
    for name, place in late.find.describe().items():
        absent = MISSING if name in _NEEDED else INFO
        yield Line("toolchain", name, absent if place == "not found" else OK, place, install("cpu"))


@dataclass(frozen=True)
class Gpu:
    """A device as the driver describes it. `peers`: the numbers of the devices whose memory it can reach."""

    name: str
    memory: int
    peers: tuple[int, ...] = ()

    @property
    def described(self) -> str:
        """Its name, its memory, and its peers."""
        reaches = f"; reaches the memory of GPU {', '.join(map(str, self.peers))}" if self.peers else ""
        return f"{self.name}, {self.memory / (1 << 30):.0f} GiB{reaches}"


def gpus() -> tuple[str, list[Gpu]]:
    """The driver's version (or why there is none) and its devices, without any framework."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)", []
    if driver.cuInit(0):
        return "the NVIDIA driver finds no usable GPU", []
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    return f"CUDA {version.value // 1000}.{version.value % 1000 // 10}", [_gpu(driver, index, count.value) for index in range(count.value)]


def _gpu(driver: ctypes.CDLL, index: int, count: int) -> Gpu:
    device, name, memory = _device(driver, index), ctypes.create_string_buffer(256), ctypes.c_size_t()
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    peers = tuple(peer for peer in range(count) if peer != index and _reaches(driver, device, _device(driver, peer)))
    return Gpu(name.value.decode(errors="replace"), memory.value, peers)


def _device(driver: ctypes.CDLL, index: int) -> ctypes.c_int:
    device = ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), index)
    return device


def _reaches(driver: ctypes.CDLL, device: ctypes.c_int, peer: ctypes.c_int) -> bool:
    able = ctypes.c_int()
    return not driver.cuDeviceCanAccessPeer(ctypes.byref(able), device, peer) and bool(able.value)


def _devices() -> Iterator[Line]:
    version, found = gpus()
    yield Line("devices", "driver", OK if found else INFO, version)
    for index, gpu in enumerate(found):
        yield Line("devices", f"GPU {index}", OK, gpu.described)


def _backends() -> Iterator[Line]:
    compiler = late.find.locate(late.find.NVRTC) is not None
    assembler = late.find.locate(late.find.NVJITLINK) is not None or late.find.ptxas() is not None
    _, found = gpus()
    lacks = [text for text, there in (("NVRTC", compiler), ("nvJitLink or ptxas", assembler), ("a GPU", bool(found))) if not there]
    cpu_hint = f"{install('cpu')}  # NVRTC, for the shadow runtime"
    yield Line("backends", "cpu", OK if compiler else MISSING, "the PTX virtual machine", cpu_hint)
    yield Line("backends", "gpu", INFO if lacks else OK, f"needs {', '.join(lacks)}" if lacks else found[0].name)


def _adapters() -> Iterator[Line]:
    for name, state in late.adapters.describe().items():
        yield Line("adapters", name, INFO, state)


def _memory() -> Iterator[Line]:
    _, found = gpus()
    for name, bound in late.hooks.describe_bounds(found[0].memory if found else None):
        yield Line("shadow memory", name, INFO, bound)


def _recording() -> Iterator[Line]:
    _, found = gpus()
    origin, memory = late.recording.describe(found[0].memory if found else None)
    hint = "pip install ziglang  # or install g++ or clang++; it is then compiled at first use"
    yield Line("recording engine", "checker", OK if origin else MISSING, origin or "not built, and no compiler", hint)
    yield Line("recording engine", "trace memory", INFO, memory)


def _native() -> Iterator[Line]:
    origin = INTERPOSER.origin()
    hint = "pip install ziglang  # or install gcc or clang; it is then compiled at first use"
    yield Line("other programs", "interposer", OK if origin else MISSING, origin or "not built, and no compiler", hint)


def _cache() -> Iterator[Line]:
    cache = late.cache.Cache()
    folder = cache.folder
    parent = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    usable = os.access(parent, os.W_OK)
    yield Line(
        "cache",
        "folder",
        OK if usable else MISSING,
        str(folder),
        "export CONSAN_CACHE_DIR=$(mktemp -d)  # or another folder that you may write",
    )
    yield Line("cache", "size", INFO, f"{cache.size() / (1 << 20):.1f} MiB" if folder.exists() else "empty")


def _environment() -> Iterator[Line]:
    known = {**{option.variable: option.help for option in options.ALL}, **options.OTHER_VARIABLES}
    for name in (name for name in known if name in os.environ):
        yield Line("environment", name, INFO, f"{os.environ[name]}  ({known[name]})")
    if not known.keys() & os.environ.keys():
        yield Line("environment", "CONSAN_*", INFO, "none is set; `consan run --help` names them")
    for name in options.unknown_variables(os.environ):
        yield Line("environment", name, MISSING, "unknown", f"unset {name}  # nothing reads it")


def _configuration() -> Iterator[Line]:
    read = config.load()
    said = [f"{name.replace('_', '-')} = {text}" for name, (_, text) in read.texts.items()]
    said += [plural(len(read.rules), "suppression")] if read.rules else []
    yield Line("configuration", read.file or config.NAME, OK if read.file else INFO, ", ".join(said) or "no [tool.consan]")
    for warning in read.warnings:
        yield Line("configuration", "warning", MISSING, warning)


PROBES: Final = (
    *(_versions, _devices, _backends, _toolchain, _adapters, _memory, _recording, _native, _cache, _environment, _configuration),
)
