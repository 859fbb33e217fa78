"""Kernels that consan cannot check: their launches are listed, and one note says why."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seam_fakes import FakeSession, package

from consan.adapters.without_ptx import FRAMEWORKS, CuTileAdapter, Framework, UnseenFramework

TILE = "def launch(stream, grid, kernel, args): return ('launched', args)\n"
JAX = {"jax": "", "jax._src": "", "jax._src.xla_bridge": "def _init_backend(platform): return platform\n"}
WARP = """
class Function:
    restype = None
    def __call__(self, *args): return (*args, self.restype)
class Library:
    def __init__(self): self.wp_cuda_load_module = Function()
class Runtime:
    def load_dll(self, path): return Library()
"""
CUTE = ("cutlass.base_dsl.jit_executor", "JitFunctionArtifacts")
TILELANG = ("tilelang.jit.kernel", "JITKernel")
ARTIFACTS = """
class JitFunctionArtifacts:
    def __init__(self): self.__post_init__()
    def __post_init__(self): pass
"""
NUMBA_MLIR = "numba_cuda_mlir.numba_cuda.cudadrv.driver"
LINKER = """
class _Linker:
    def complete(self): return "machine code"
"""
KERNEL = """
class JITKernel:
    def __init__(self): self()
    def __call__(self): pass
"""
OTHERS = {
    "warp": "",
    "warp._src": "",
    "warp._src.context": WARP,
    "cutlass": "",
    "cutlass.base_dsl": "",
    CUTE[0]: ARTIFACTS,
    "tilelang": "",
    "tilelang.jit": "",
    TILELANG[0]: KERNEL,
    **dict.fromkeys(("numba_cuda_mlir", "numba_cuda_mlir.numba_cuda", "numba_cuda_mlir.numba_cuda.cudadrv"), ""),
    NUMBA_MLIR: LINKER,
}


UNSEEN = {each.name: each for each in FRAMEWORKS}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from package(tmp_path / "site", monkeypatch, {"cuda": "", "cuda.tile": TILE, **JAX, **OTHERS})


def kernel() -> None:
    """Stands for a kernel of cuTile."""


def test_its_launches_are_listed_with_a_note() -> None:
    session, adapter = FakeSession(), CuTileAdapter()
    adapter.install(session)
    tile: Any = importlib.import_module("cuda.tile")
    assert tile.launch(0, (1,), kernel, (3,)) == ("launched", (3,))
    adapter.remove()
    tile.launch(0, (1,), kernel, (3,))
    assert session.listed == ["kernel (cuTile)"]
    (note,) = session.notes
    assert note.startswith("cuTile makes no PTX")


def test_a_program_that_uses_the_gpu_by_jax_is_listed_on_a_gpu() -> None:
    session, adapter = FakeSession(), UnseenFramework(UNSEEN["jax"])
    adapter.install(session)
    bridge: Any = importlib.import_module("jax._src.xla_bridge")
    assert bridge._init_backend("cpu") == "cpu"
    assert session.listed == []
    assert bridge._init_backend("cuda") == "cuda"
    adapter.remove()
    assert session.listed == ["what JAX launches"]
    (note,) = session.notes
    assert "consan run script.py" in note


def test_a_program_that_uses_the_gpu_by_warp_is_listed_where_it_loads_a_module() -> None:
    session, adapter = FakeSession(), UnseenFramework(UNSEEN["warp"])
    adapter.install(session)
    context: Any = importlib.import_module("warp._src.context")
    library = context.Runtime().load_dll("warp.so")
    library.wp_cuda_load_module.restype = "a handle"
    assert session.listed == []
    assert library.wp_cuda_load_module(1, b"module.ptx") == (1, b"module.ptx", "a handle")
    adapter.remove()
    assert session.listed == ["what Warp launches"]


def test_a_program_that_links_a_kernel_by_numba_cuda_mlir_is_listed() -> None:
    session, adapter = FakeSession(), UnseenFramework(UNSEEN["numba-cuda-mlir"])
    adapter.install(session)
    driver: Any = importlib.import_module(NUMBA_MLIR)
    assert driver._Linker().complete() == "machine code"
    adapter.remove()
    assert session.listed == ["what numba-cuda-mlir launches"]


@pytest.mark.parametrize(("name", "module", "made"), [("cute", *CUTE), ("tilelang", *TILELANG)], ids=["cute", "tilelang"])
def test_a_program_that_uses_the_gpu_by_a_compiler_of_its_own_is_listed(name: str, module: str, made: str) -> None:
    session, adapter = FakeSession(), UnseenFramework(UNSEEN[name])
    adapter.install(session)
    imported = importlib.import_module(module)
    assert session.listed == []
    getattr(imported, made)()
    adapter.remove()
    assert session.listed == [f"what {adapter.title} launches"]


@pytest.mark.parametrize("name", UNSEEN)
def test_a_framework_without_the_function_that_shows_its_use_is_listed_at_once(name: str) -> None:
    session, adapter = FakeSession(), UnseenFramework(Framework(*UNSEEN[name][:4], "Gone.function"))
    adapter.install(session)
    assert session.listed == []
    importlib.import_module(adapter.package)
    adapter.remove()
    assert session.listed == [f"what {adapter.title} launches"]
