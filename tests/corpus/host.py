"""CUTLASS kernels for Ampere, Hopper and Blackwell with their host code: PTX, and a library that says how each is to be launched.

One run of nvcc makes both. The library holds CUTLASS's own host code, linked against `cutlass_launches/recorder.cpp` in place of a
CUDA runtime, so that it needs no GPU: `record` calls it with addresses and gets back grid, block, cluster, shared memory and the
bytes of each parameter.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consan._errors import ConsanError
from consan.instrument.ptx import parse
from consan.toolchain.cache import key

from .tools import CACHE, nvcc_version, run

SOURCES = Path(__file__).resolve().parent / "cutlass_launches"
Dim3 = tuple[int, int, int]
Encode = Callable[[int, dict[str, Any]], bytes]


def _tile(cta: Dim3, warp: Dim3) -> dict[str, str]:
    return {f"{whose}_{axis}": str(n) for whose, shape in (("TILE", cta), ("WARP", warp)) for axis, n in zip("MNK", shape, strict=True)}


_SPECIALISED = {"EPILOGUE": "TmaWarpSpecialized", "CLUSTER_M": "1", "TILE_M": "64"}
_COOPERATIVE = {"MAINLOOP": "KernelTmaWarpSpecializedCooperative", "EPILOGUE": "TmaWarpSpecializedCooperative", "TILE_M": "128"}
_TENSOR = {"SIMT": "0", **_tile((64, 64, 32), (32, 32, 32))}
_SIMT = {"SIMT": "1", **_tile((32, 64, 8), (32, 32, 8))}
_HOPPER, _BLACKWELL = "cute/tutorial/hopper", "cute/tutorial/blackwell"
# Source -> what it is compiled for.
_ARCHITECTURES = {"gemm_sm80.cu": "sm_80", "tutorial_sm100.cu": "sm_100a", "gemm_sm100.cu": "sm_100a"}

# name -> (source, macros)
KERNELS = {
    "wgmma_tn": ("tutorial.cu", {"TUTORIAL": f'"{_HOPPER}/wgmma_sm90.cu"', "LAUNCH_TN": "1"}),
    "wgmma_nt": ("tutorial.cu", {"TUTORIAL": f'"{_HOPPER}/wgmma_sm90.cu"', "LAUNCH_TN": "0"}),
    "wgmma_tma_tn": ("tutorial.cu", {"TUTORIAL": f'"{_HOPPER}/wgmma_tma_sm90.cu"', "LAUNCH_TN": "1"}),
    "wgmma_tma_nt": ("tutorial.cu", {"TUTORIAL": f'"{_HOPPER}/wgmma_tma_sm90.cu"', "LAUNCH_TN": "0"}),
    "gemm_specialised": ("gemm_sm90.cu", {**_SPECIALISED, "MAINLOOP": "KernelTmaWarpSpecialized"}),
    "gemm_pingpong": ("gemm_sm90.cu", {**_SPECIALISED, "MAINLOOP": "KernelTmaWarpSpecializedPingpong"}),
    "gemm_cooperative": ("gemm_sm90.cu", {**_COOPERATIVE, "CLUSTER_M": "1"}),
    "gemm_cooperative_cluster": ("gemm_sm90.cu", {**_COOPERATIVE, "CLUSTER_M": "2"}),
    "gemm_cluster": ("gemm_sm90.cu", {"MAINLOOP": "KernelTma", "EPILOGUE": "NoSmemWarpSpecialized", "TILE_M": "64", "CLUSTER_M": "2"}),
    "umma": ("tutorial_sm100.cu", {"TUTORIAL": f'"{_BLACKWELL}/01_mma_sm100.cu"'}),
    "umma_tma": ("tutorial_sm100.cu", {"TUTORIAL": f'"{_BLACKWELL}/02_mma_tma_sm100.cu"'}),
    "umma_multicast": ("tutorial_sm100.cu", {"TUTORIAL": f'"{_BLACKWELL}/03_mma_tma_multicast_sm100.cu"'}),
    "umma_pair": ("tutorial_sm100.cu", {"TUTORIAL": f'"{_BLACKWELL}/04_mma_tma_2sm_sm100.cu"'}),
    "umma_pair_epilogue": ("tutorial_sm100.cu", {"TUTORIAL": f'"{_BLACKWELL}/05_mma_tma_epi_sm100.cu"'}),
    "gemm_sm100": ("gemm_sm100.cu", {"TILE_M": "128", "CLUSTER_M": "1", "SMS": "1"}),
    "gemm_sm100_pair": ("gemm_sm100.cu", {"TILE_M": "256", "CLUSTER_M": "2", "SMS": "2"}),
    "gemm_two_stages": ("gemm_sm80.cu", {**_TENSOR, "STAGES": "2"}),
    "gemm_three_stages": ("gemm_sm80.cu", {**_TENSOR, "STAGES": "3"}),
    "gemm_five_stages": ("gemm_sm80.cu", {**_TENSOR, "STAGES": "5"}),
    "gemm_shared_k": ("gemm_sm80.cu", {**_TENSOR, **_tile((128, 64, 64), (64, 64, 32)), "STAGES": "3"}),
    "gemm_simt_two_stages": ("gemm_sm80.cu", {**_SIMT, "STAGES": "2"}),
    "gemm_simt_four_stages": ("gemm_sm80.cu", {**_SIMT, "STAGES": "4"}),
}


def architecture(name: str) -> str:
    """What a kernel is compiled for."""
    return _ARCHITECTURES.get(KERNELS[name][0], "sm_90a")


@dataclass(frozen=True)
class Recorded:
    """One launch as the host code wants it."""

    entry: str
    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    arguments: tuple[bytes, ...]


def problem(name: str, include: Path) -> str | None:
    """Why a kernel cannot be made with these CUTLASS headers."""
    if nvcc_version() is None:
        return "nvcc with a host compiler is not on PATH"
    needed = [include.parent / "tools" / "util" / "include"]
    tutorial = KERNELS[name][1].get("TUTORIAL")
    if tutorial is not None:
        needed.append((include.parent / "examples" / tutorial.strip('"')).parent)
    return next((f"CUTLASS is installed without {folder}" for folder in needed if not folder.is_dir()), None)


def ptx(name: str, include: Path) -> str:
    """The kernel's module, with line information."""
    return build(name, include)[0].decode()


def build(name: str, include: Path) -> tuple[bytes, bytes]:
    """PTX and library, from the cache or from nvcc."""
    source, macros = KERNELS[name]
    number = architecture(name).removeprefix("sm_")
    texts = [(SOURCES / file).read_text() for file in (source, "recorder.cpp")]
    version = (include / "cutlass" / "version.h").read_text()
    identities = [key("corpus-host", part, *texts, repr(macros), version, str(include), nvcc_version() or "") for part in ("ptx", "so")]
    found = [CACHE.get(identity) for identity in identities]
    if found[0] is None or found[1] is None:
        found = list(_compile(source, macros, include, number))
        for identity, data in zip(identities, found, strict=True):
            CACHE.put(identity, data or b"")
    return found[0] or b"", found[1] or b""


def _compile(source: str, macros: dict[str, str], include: Path, number: str) -> tuple[bytes, bytes]:
    root = include.parent
    folders = [f"-I{folder}" for folder in (include, root / "tools" / "util" / "include", root / "examples")]
    defines = [f"-D{name}={value}" for name, value in macros.items()]
    with tempfile.TemporaryDirectory(prefix="consan-corpus-") as folder:
        library = Path(folder, "library.so")
        run(
            [
                *(
                    "nvcc",
                    "-std=c++17",
                    "-lineinfo",
                    "--expt-relaxed-constexpr",
                    "-w",
                    "-DNDEBUG",
                    "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL",
                ),
                *("-gencode", f"arch=compute_{number},code=compute_{number}", "-cudart", "none", "-shared", "-Xcompiler", "-fPIC"),
                *("-Xlinker", "-Bsymbolic", "-keep", "-keep-dir", folder, *folders, *defines),
                *(str(SOURCES / source), str(SOURCES / "recorder.cpp"), "-o", str(library)),
            ]
        )
        return Path(folder, source).with_suffix(".ptx").read_bytes(), library.read_bytes()


# -- launches ----------------------------------------------------------------------------------------------------------------------

_Launched = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p))
_Words, _Longs = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)
_Encoded = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, _Longs, _Longs, _Words, _Words),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int),
)


@functools.cache
def _library(name: str, include: Path) -> ctypes.CDLL:
    with tempfile.NamedTemporaryFile(prefix="consan-corpus-", suffix=".so") as file:
        file.write(build(name, include)[1])
        file.flush()
        return ctypes.CDLL(file.name)


@functools.cache
def _sizes(name: str, include: Path) -> dict[str, tuple[int, ...]]:
    """Bytes of each parameter of each kernel in the module."""
    functions = parse(ptx(name, include)).functions
    return {function.name: tuple(param.nbytes for param in function.params) for function in functions if function.kind == "entry"}


def record(name: str, include: Path, sizes: Dim3, addresses: Dim3, multiprocessors: int, encode: Encode) -> Recorded:
    """How the host code launches C = A * B of these sizes with the matrices at these addresses.

    `encode` makes the bytes of a tensor map from its address and the other arguments of cuTensorMapEncodeTiled.
    """
    library, found, errors = _library(name, include), [], []

    def launched(entry: bytes, shape: Any, arguments: Any) -> None:
        text = entry.decode()
        parts = (ctypes.string_at(arguments[i], size) for i, size in enumerate(_sizes(name, include)[text]))
        found.append(Recorded(text, tuple(shape[0:3]), tuple(shape[3:6]), tuple(shape[6:9]), shape[9], tuple(parts)))

    def encoded(target: int, dtype: int, rank: int, address: int, *rest: Any) -> int:
        dims, strides, box, steps, interleave, swizzle, l2, oob = rest
        said = {"dtype": dtype, "dims": dims[:rank], "strides": strides[: rank - 1], "box": box[:rank], "element_strides": steps[:rank]}
        try:
            data = encode(address, {**said, "interleave": interleave, "swizzle": swizzle, "l2": l2, "oob": oob})
        except ConsanError as error:
            errors.append(error)
            return 1
        ctypes.memmove(target, data, len(data))
        return 0

    callbacks = _Launched(launched), _Encoded(encoded)
    library.recorder_set(*callbacks)
    status = library.launch(*sizes, *map(ctypes.c_void_p, addresses), multiprocessors)
    if errors:
        raise errors[0]
    if status or not found:
        raise ConsanError(f"{name}: its host code launches nothing at {sizes} (status {status})")
    return found[0]
