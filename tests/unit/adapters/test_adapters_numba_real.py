"""The installed Numba-CUDA, compiling to PTX without a device, its context replaced by a stand-in; and that PTX on the virtual machine."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from seam_fakes import FakeSession

import consan
from consan.adapters.numba import NumbaAdapter

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytestmark = pytest.mark.filterwarnings("default")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Numba about NumPy
    cuda: Any = importlib.import_module("numba.cuda")
float32 = cuda.types.float32
HERE = Path(__file__).resolve()


def reversed_tile(x: Any, y: Any) -> None:
    tile = cuda.shared.array(64, float32)
    thread = cuda.threadIdx.x
    tile[thread] = x[thread]  # WRITE
    y[thread] = tile[63 - thread]  # READ


def synchronized(x: Any, y: Any) -> None:
    tile = cuda.shared.array(64, float32)
    thread = cuda.threadIdx.x
    tile[thread] = x[thread]
    cuda.syncthreads()
    y[thread] = tile[63 - thread]


class Context:
    """Loads nothing."""

    device = SimpleNamespace(id=0, compute_capability=(9, 0))

    def create_module_image(self, image: Any, setup: Any, teardown: Any) -> Any:
        memory = SimpleNamespace(__cuda_memory__=True, device_ctypes_pointer=SimpleNamespace(value=4096))
        module = SimpleNamespace(image=image, initialized=True, get_global_symbol=lambda name: (memory, 8))
        module.get_function = lambda name: SimpleNamespace(module=module, name=name)
        return module


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def adapter(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[NumbaAdapter]:
    adapter = NumbaAdapter()
    adapter.install(session)
    from numba.cuda import codegen
    from numba.cuda.cudadrv import driver

    written: list[Any] = []
    monkeypatch.setattr(codegen.devices, "get_context", Context)
    monkeypatch.setattr(driver, "host_to_device", lambda to, start, size: written.append((driver.device_pointer(to), size)))
    yield adapter
    adapter.remove()
    assert set(written) <= {(4096, 8)}


def compiled(function: Any) -> Any:
    """The code library of a kernel, made by the calls that `_Kernel` makes."""
    from numba.cuda import dispatcher, types

    try:
        numbers = (types.float32[::1], types.float32[::1])
        result = dispatcher.compile_cuda(function, types.void, numbers, debug=False, lineinfo=False, nvvm_options={"opt": 3}, cc=(9, 0))
        library = result.library
        library._entry_name = result.fndesc.llvm_func_name
        dispatcher.kernel_fixup(library.get_function(library._entry_name), False)
        library.get_asm_strs()
    except Exception as error:
        if "DynamicLibNotFound" in type(error).__name__ or "libnvvm" in str(error) or "libNVVM" in str(error):
            pytest.skip(f"Numba cannot compile here: {type(error).__name__}")
        raise
    return library


def test_this_version_is_taken_over(adapter: NumbaAdapter, session: FakeSession) -> None:
    assert "all kernels that it launches" in adapter.describe()
    assert session.notes == []


def test_a_launch_gets_the_instrumented_function(adapter: NumbaAdapter, session: FakeSession) -> None:
    library = compiled(synchronized)
    function = library.get_cufunc()
    assert (function.name, function.module.image.code_type) == (library._entry_name, "cubin")
    assert bytes(function.module.image.code) == b"instrumented:" + library.get_asm_str().encode()
    assert re.search(rf'\.file\s+\d+ "{re.escape(str(HERE))}"', session.texts[0])
    assert session.notes == []
    assert library._cubin_cache == {}
    assert library._cufunc_cache == {}


@pytest.mark.parametrize(("function", "verdict"), [(reversed_tile, "violations"), (synchronized, "clean")])
def test_what_numba_compiles_is_checked_and_its_lines_are_pythons(adapter: NumbaAdapter, function: Any, verdict: str) -> None:
    library = compiled(function)
    kernel = consan.Kernel(library.get_asm_str(), library._entry_name)
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    arrays = [word for array in (x, y) for word in (np.int64(0), np.int64(0), np.int64(64), np.int64(4), array, np.int64(64), np.int64(4))]
    report = consan.launch(kernel, 1, 64, arrays, device="cpu")
    assert report.verdict == verdict, report
    lines = HERE.read_text().splitlines()
    marked = {number for number, text in enumerate(lines, 1) if text.endswith(("# WRITE", "# READ"))}
    assert {access.line for finding in report.findings for access in finding.accesses} == (marked if report.findings else set())
