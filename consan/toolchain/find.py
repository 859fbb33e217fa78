"""Finds the CUDA compiler libraries, headers and tools on this machine.

Decides which `libnvrtc`, `libnvJitLink`, `ptxas` and include folders consan uses. Looks, in this order, at pip wheels on
`sys.path` (`nvidia/cu13/...` and the older `nvidia/<component>/...`), at `CUDA_HOME`/`CUDA_PATH`, at the toolkit that `nvcc` on
PATH belongs to, at the usual system folders, and at the dynamic loader. Nothing here needs a GPU or a driver, and nothing is loaded
before it is used.

Not handled: choosing an older toolkit because the driver is old (the newest found wins), and Windows library names.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from consan._errors import EnvironmentFailure
from consan.dataclass import dataclass
from consan.toolchain.extras import install

# Folders below site-packages/nvidia that hold a component: CUDA 13 wheels share one, CUDA 12 wheels have one each.
_WHEEL_FOLDERS = ("cu[0-9]*", "cuda_nvrtc", "nvjitlink", "cuda_runtime", "cuda_cccl", "cuda_nvcc", "cuda_crt")
_SYSTEM_ROOTS = ("/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda")
_LIBRARY_FOLDERS = ("lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_HEADER_PROBES = ("cuda_runtime.h", "cuda/std", "crt")  # any of them makes an `include` folder a CUDA one
_VERSIONED = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


@dataclass(frozen=True)
class Library:
    """A shared library that consan looks for, and what to say to a user who does not have it."""

    stem: str
    purpose: str


NVRTC = Library("nvrtc", "NVRTC, the CUDA C++ compiler library")
NVJITLINK = Library("nvJitLink", "nvJitLink, the PTX assembler library")


def _wheel_roots() -> Iterator[Path]:
    """Component folders of NVIDIA wheels on `sys.path`, newest major version first."""
    for entry in dict.fromkeys(sys.path):
        base = Path(entry or ".") / "nvidia"
        if not base.is_dir():
            continue
        for pattern in _WHEEL_FOLDERS:
            yield from sorted(base.glob(pattern), key=lambda folder: _numbers(folder.name), reverse=True)


def _toolkit_roots() -> Iterator[Path]:
    """Toolkit folders: named by the environment, holding `nvcc`, or in the usual place."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(variable):
            yield Path(value)
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc).resolve().parent.parent
    yield from map(Path, _SYSTEM_ROOTS)


@functools.lru_cache(maxsize=1)
def roots() -> tuple[Path, ...]:
    """Every folder that may hold `lib`, `include` and `bin`, in order of preference."""
    return tuple(dict.fromkeys(root for root in (*_wheel_roots(), *_toolkit_roots()) if root.is_dir()))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _best(candidates: Iterable[Path]) -> Path | None:
    """The highest version among files `libX.so[.N]`; an unversioned name counts as the oldest."""

    def key(path: Path) -> tuple[int, ...]:
        match = _VERSIONED.search(path.name)
        return _numbers(match.group(1)) if match else ()

    return max(candidates, key=key, default=None)


def _in_roots(stem: str) -> Path | None:
    for root in roots():
        for folder in _LIBRARY_FOLDERS:
            if found := _best((root / folder).glob(f"lib{stem}.so*")):
                return found
    return None


@functools.lru_cache(maxsize=8)
def locate(library: Library) -> str | None:
    """Path (or loader name) of a library, or None."""
    found = _in_roots(library.stem)
    return str(found) if found else ctypes.util.find_library(library.stem)


@functools.lru_cache(maxsize=8)
def load(library: Library) -> ctypes.CDLL:
    """Load a library, or fail with one line that names what to install."""
    path = locate(library)
    if path is None:
        raise EnvironmentFailure(f"{library.purpose}, was not found (lib{library.stem}.so); install it with: {install('cpu')}")
    try:
        for part in sorted(Path(path).parent.glob(f"lib{library.stem}-builtins.so*")):
            ctypes.CDLL(str(part))  # NVRTC 13.0 looks for it by its name alone, and finds what is loaded
        return ctypes.CDLL(path)
    except OSError as error:
        raise EnvironmentFailure(f"{library.purpose}, cannot be loaded: {error}; reinstall it with: {install('cpu')}") from error


@functools.lru_cache(maxsize=1)
def ptxas() -> str | None:
    """Path of the `ptxas` program, or None: PATH first, since a user who put one there means it."""
    on_path = shutil.which("ptxas")
    if on_path:
        return on_path
    return next((str(root / "bin" / "ptxas") for root in roots() if (root / "bin" / "ptxas").is_file()), None)


def has_libcudacxx(folder: Path) -> bool:
    """Whether an include folder offers libcu++. A compilation must see exactly one."""
    return (folder / "cuda" / "std").is_dir()


def _headers_under(root: Path) -> Iterator[Path]:
    include = root / "include"
    if has_libcudacxx(include / "cccl"):
        yield include / "cccl"
    if any((include / probe).exists() for probe in _HEADER_PROBES):
        yield include


@functools.lru_cache(maxsize=1)
def include_dirs() -> tuple[Path, ...]:
    """Folders for `#include <cuda_fp16.h>`, `<cuda/barrier>`, `<cub/...>`, preferred ones first.

    libcu++ asks for its own parts with `__has_include`, so a second, older copy behind the first breaks it: only one stays.
    """
    found = dict.fromkeys(folder for root in roots() for folder in _headers_under(root))
    first = next(filter(has_libcudacxx, found), None)
    return tuple(folder for folder in found if folder == first or not has_libcudacxx(folder))


def own_headers() -> Path:
    """The folder of `consan.h`."""
    return Path(__file__).parents[1] / "include"


@functools.lru_cache(maxsize=1)
def cutlass_include() -> Path | None:
    """The include folder of the `nvidia-cutlass` wheel, or None."""
    candidates = (Path(entry or ".") / "cutlass_library" / "source" / "include" for entry in sys.path)
    return next((folder for folder in candidates if (folder / "cutlass").is_dir()), None)


def describe() -> dict[str, str]:
    """The tools that were found, for `consan doctor`."""
    return {
        "nvrtc": locate(NVRTC) or "not found",
        "nvjitlink": locate(NVJITLINK) or "not found",
        "ptxas": ptxas() or "not found",
        "headers": ", ".join(map(str, include_dirs())) or "not found",
        "cutlass": str(cutlass_include() or "not found"),
    }


def forget() -> None:
    """Search again (after the environment changed; used by tests)."""
    for cached in (roots, locate, load, ptxas, include_dirs, cutlass_include):
        cached.cache_clear()
