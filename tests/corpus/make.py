"""Real PTX, made on demand and cached, never committed: NVRTC, nvcc, Triton, Numba, CuPy and CUTLASS kernels.

`available()` lists what this machine can make, `missing()` what it cannot and why. A framework that the running interpreter lacks is looked
for in the one that CONSAN_CORPUS_PYTHON names. None of it needs a GPU. By hand: `PYTHONPATH=tests python -m corpus --out FOLDER [PATTERN]`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from consan._errors import ConsanError
from consan.toolchain import find, nvrtc
from consan.toolchain.cache import key
from consan.toolchain.extras import install

from . import host
from .tools import CACHE, nvcc_version, run

HERE = Path(__file__).resolve().parent
KERNELS = HERE / "kernels"
PRODUCERS = HERE / "producers"
ARCHS = ("sm_80", "sm_90a")
PLAIN = (
    "block_merge_sort",
    "block_radix_sort",
    "block_reduce",
    "block_scan",
    "cooperative_grid",
    "cp_async_pipeline",
    "cuda_pipeline_object",
    "printf_assert",
    "sgemm_tiled",
    "wmma_half",
)
NVRTC_HOPPER = {"bulk_pipeline": KERNELS / "bulk_pipeline.cu", "tma_gemm": HERE.parent / "bench" / "tma_gemm.cu"}
WITH_NVCC = ("block_radix_sort", "cp_async_pipeline", "printf_assert", "sgemm_tiled", "wmma_half")
CUTLASS = {"cutlass_sm80": "sm_80", "cutlass_sm90": "sm_90a"}
FRAMEWORKS = {
    "triton": ("vector_add", "softmax", "layer_norm", "matmul", "matmul_small"),
    "numba": ("block_sum", "warp_sum", "histogram"),
    "cupy": ("elementwise", "reduction", "cub_sum", "partition", "jit_sum"),
}
# Scripts whose kernels are for Hopper only -> the framework they need, and their kernels.
HOPPER = {
    "triton_hopper": (
        "triton",
        (
            "matmul_2_stages",
            "matmul_3_stages",
            "matmul_4_stages",
            "matmul_transposed",
            "matmul_bf16",
            "matmul_fp8",
            "matmul_tf32",
            "matmul_int8",
            "matmul_host_tma",
            "matmul_host_tma_4_stages",
            "matmul_specialised",
            "matmul_device_tma",
            "matmul_persistent",
            "matmul_persistent_tma",
            "attention",
            "attention_causal",
            "attention_tma",
            "attention_specialised",
        ),
    ),
    "gluon_hopper": ("triton", ("matmul_specialised", "matmul_specialised_8_warps", "matmul_pipelined", "scale_in_place")),
}
# Scripts whose kernels Triton also compiles to Blackwell's tensor memory.
BLACKWELL = {"triton_hopper": ("sm_90a", "sm_100")}
MODULES = {"triton": "triton", "numba": "numba_cuda", "cupy": "cupy"}
_CUTLASS_NEEDS = 3_002_000  # CUTLASS 4.2 under NVRTC needs a CCCL older than this


@dataclass(frozen=True)
class Entry:
    """One PTX file that can be made; `skip` says why not, where it cannot."""

    name: str
    producer: str
    arch: str
    make: Callable[[], str]
    skip: str | None = None


def entries() -> list[Entry]:
    """Everything, whether or not this machine can make it."""
    return [*_nvrtc_entries(), *_nvcc_entries(), *_cutlass_entries(), *_framework_entries()]


def available() -> list[Entry]:
    """What this machine can make."""
    return [entry for entry in entries() if entry.skip is None]


def missing() -> list[Entry]:
    """What it cannot make; each entry's `skip` is the reason."""
    return [entry for entry in entries() if entry.skip is not None]


def get(name: str) -> Entry:
    """The entry of a name such as "triton/matmul/sm_80"."""
    return next(entry for entry in entries() if entry.name == name)


def notes(ptx: str) -> dict[str, Any]:
    """What an entry's first line says that a launch needs (see `producers/triton_hopper.py`)."""
    found = re.match(r"// consan-corpus: (\{.*\})\n", ptx)
    return dict(json.loads(found.group(1))) if found else {}


# -- NVRTC and nvcc ----------------------------------------------------------------------------------------------------------------


def _nvrtc_entries() -> Iterator[Entry]:
    skip = None if find.locate(find.NVRTC) else f"NVRTC is not installed: {install('cpu')}"
    for name in PLAIN:
        for arch in ARCHS:
            yield Entry(f"nvrtc/{name}/{arch}", "nvrtc", arch, functools.partial(_with_nvrtc, KERNELS / f"{name}.cu", arch), skip)
    for name, path in NVRTC_HOPPER.items():
        yield Entry(f"nvrtc/{name}/sm_90a", "nvrtc", "sm_90a", functools.partial(_with_nvrtc, path, "sm_90a"), skip)


def _with_nvrtc(path: Path, arch: str, include_dirs: tuple[str, ...] = ()) -> str:
    source = path.read_text()
    identity = key("corpus-nvrtc", source, arch, str(path), *map(str, nvrtc.version()), *include_dirs)
    return CACHE.fetch_text(identity, lambda: nvrtc.compile_ptx(source, name=str(path), arch=arch, include_dirs=include_dirs).ptx)


def _nvcc_entries() -> Iterator[Entry]:
    skip = None if nvcc_version() else "nvcc with a host compiler is not on PATH"
    for name in WITH_NVCC:
        yield Entry(f"nvcc/{name}/sm_90a", "nvcc", "sm_90a", functools.partial(_with_nvcc, name, "sm_90a"), skip)
    yield Entry("nvcc-debug/sgemm_tiled/sm_80", "nvcc", "sm_80", functools.partial(_with_nvcc, "sgemm_tiled", "sm_80", ("-G",)), skip)


def _with_nvcc(name: str, arch: str, options: tuple[str, ...] = ("-lineinfo",)) -> str:
    path = KERNELS / f"{name}.cu"
    identity = key("corpus-nvcc", path.read_text(), arch, str(path), nvcc_version() or "", *options)
    return CACHE.fetch_text(identity, lambda: _run_nvcc(path, arch, options))


def _run_nvcc(path: Path, arch: str, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="consan-corpus-") as folder:
        target = Path(folder, "kernel.ptx")
        command = ["nvcc", "-ptx", "-std=c++17", f"-arch={nvrtc.virtual_arch(arch)}", *options, str(path), "-o", str(target)]
        run(command, dict(os.environ))
        return target.read_text()


# -- CUTLASS -----------------------------------------------------------------------------------------------------------------------


def _cutlass_entries() -> Iterator[Entry]:
    include = find.cutlass_include() or _probe()["cutlass"]
    without_nvrtc = None if _older_libcudacxx() else "CUTLASS under NVRTC needs libcu++ older than CUDA 13.2"
    for name, arch in CUTLASS.items():
        nvcc = functools.partial(_with_nvcc, name, arch, ("-lineinfo", "--expt-relaxed-constexpr", f"-I{include}"))
        absent = None if include else f"nvidia-cutlass is not installed in {_interpreter()}"
        yield Entry(f"nvcc/{name}/{arch}", "nvcc", arch, nvcc, absent or (None if nvcc_version() else "nvcc is not on PATH"))
        in_process = functools.partial(_with_nvrtc, KERNELS / f"{name}.cu", arch, (str(include), *_older_libcudacxx()))
        yield Entry(f"nvrtc/{name}/{arch}", "nvrtc", arch, in_process, absent or without_nvrtc)
    for name in host.KERNELS:
        skip = absent or host.problem(name, Path(str(include)))
        arch = host.architecture(name)
        yield Entry(f"cutlass/{name}/{arch}", "nvcc", arch, functools.partial(host.ptx, name, Path(str(include))), skip)


def cutlass_launch(name: str, sizes: host.Dim3, addresses: host.Dim3, multiprocessors: int, encode: host.Encode) -> host.Recorded:
    """How CUTLASS's own host code launches the kernel of an entry such as "cutlass/gemm_pingpong"."""
    include = find.cutlass_include() or _probe()["cutlass"]
    return host.record(name.removeprefix("cutlass/"), Path(str(include)), sizes, addresses, multiprocessors, encode)


@functools.lru_cache(maxsize=1)
def _older_libcudacxx() -> tuple[str, ...]:
    """Include folders of the first toolkit whose libcu++ CUTLASS can use; its parent goes along, for <cccl/...>."""
    for root in find.roots():
        version = root / "include" / "cccl" / "cuda" / "std" / "__cccl" / "version.h"
        found = re.search(r"define CCCL_VERSION (\d+)", version.read_text()) if version.is_file() else None
        if found and int(found.group(1)) < _CUTLASS_NEEDS:
            return str(root / "include" / "cccl"), str(root / "include")
    return ()


# -- frameworks, in their own interpreter ------------------------------------------------------------------------------------------

_PROBE = """
import importlib.metadata, importlib.util, json, os

def version(module, *names):
    if importlib.util.find_spec(module) is None:
        return None
    installed = {(item.metadata["Name"] or "").lower(): item.version for item in importlib.metadata.distributions()}
    return next((installed[name] for name in names if name in installed), "unknown")

spec = importlib.util.find_spec("cutlass_library")
cutlass = os.path.join(os.path.dirname(spec.origin), "source", "include") if spec and spec.origin else ""
print(json.dumps({
    "triton": version("triton", "triton"),
    "numba": version("numba_cuda", "numba-cuda"),
    "cupy": version("cupy", "cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "cutlass": cutlass if os.path.isdir(cutlass) else None,
}))
"""


def _interpreter() -> str:
    return os.environ.get("CONSAN_CORPUS_PYTHON") or sys.executable


@functools.lru_cache(maxsize=1)
def _probe() -> dict[str, str | None]:
    """Version of each framework in the other interpreter, and where CUTLASS is; None for what is absent."""
    try:
        found = json.loads(run([_interpreter(), "-c", _PROBE], dict(os.environ)))
    except (ConsanError, OSError, ValueError):
        found = dict.fromkeys((*FRAMEWORKS, "cutlass"))
    return dict(found)


def _framework_entries() -> Iterator[Entry]:
    for framework, names in FRAMEWORKS.items():
        version = _probe()[framework]
        skip = None if version else f"{MODULES[framework]} is not installed in {_interpreter()}; set CONSAN_CORPUS_PYTHON"
        for name in names:
            for arch in ARCHS:
                make = functools.partial(_with_framework, f"{framework}_kernels", name, arch, version or "")
                yield Entry(f"{framework}/{name}/{arch}", framework, arch, make, skip)
    for script, (framework, names) in HOPPER.items():
        version = _probe()[framework]
        skip = _hopper_problem(framework, version)
        for name, arch in product(names, BLACKWELL.get(script, ("sm_90a",))):
            make = functools.partial(_with_framework, script, name, arch, version or "")
            yield Entry(f"{script}/{name}/{arch}", framework, arch, make, skip)


def _hopper_problem(framework: str, version: str | None) -> str | None:
    if version is None:
        return f"{MODULES[framework]} is not installed in {_interpreter()}; set CONSAN_CORPUS_PYTHON"
    return None if version.startswith("3.6.") else f"these kernels are written for Triton 3.6, not {version}"


def _with_framework(script_name: str, name: str, arch: str, version: str) -> str:
    script = PRODUCERS / f"{script_name}.py"
    texts = (script.read_text(), *((PRODUCERS / "triton_hopper.py").read_text() for _ in range(script_name in HOPPER)))
    identity = key("corpus-framework", *texts, name, arch, version, str(script))
    command = [_interpreter(), "-W", "ignore", str(script), name, arch]
    return CACHE.fetch_text(identity, lambda: run(command, _framework_environment()))


def _framework_environment() -> dict[str, str]:
    """The caller's environment with NVRTC, NVVM and headers where the frameworks look, and caches of their own."""
    folders = [str(Path(path).parent) for path in [find.locate(find.NVRTC)] if path]
    folders += [str(root / part) for root in find.roots() for part in ("lib", "lib64", "nvvm/lib64") if (root / part).is_dir()]
    environment = dict(os.environ)
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [*folders, environment.get("LD_LIBRARY_PATH")]))
    environment["CONSAN_CORPUS_INCLUDES"] = os.pathsep.join(map(str, find.include_dirs()))
    environment["TRITON_CACHE_DIR"] = str(CACHE.folder / "triton")
    toolkit = next((root for root in find.roots() if (root / "nvvm").is_dir()), None)
    if toolkit is not None:
        environment.setdefault("CUDA_HOME", str(toolkit))
    return environment
