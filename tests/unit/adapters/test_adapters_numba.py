"""The Numba-CUDA adapter against a miniature of numba-cuda 0.30.4: the same names, the same calls, in the same order.

test_adapters_numba_real.py meets the installed one (with a stand-in for the driver), tests/gpu/test_numba_adapter.py a GPU.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from seam_fakes import FakeSession, package

from consan._errors import NotSupported
from consan.adapters.driven.numba import NumbaMlirStandIn, NumbaStandIn
from consan.adapters.numba import NumbaAdapter
from consan.reports.source.variables import Argument

_CODEGEN = """
from numba.cuda.cudadrv import devices
class CUDACodeLibrary:
    def __init__(self, name, ptxes=("ptx .loc",), files=(), cudadevrt=False, options=(), entry="entry"):
        self.name, self._entry_name, self._ptxes = name, entry, list(ptxes)
        self._linking_files, self.needs_cudadevrt = set(files), cudadevrt
        self._nvvm_options, self._setup_functions, self._teardown_functions, self._cufunc_cache = dict.fromkeys(options), [], [], {}
    @property
    def llvm_strs(self): return self._ptxes
    def get_asm_strs(self, cc=None): return self._ptxes
    def get_cufunc(self):
        return f"plain {self.name}"
"""
_DEVICES = """
from types import SimpleNamespace
class Module:
    def __init__(self, image, setup, teardown):
        self.image, self.callbacks, self.initialized, self.handle = image, setup, False, 70
    def setup(self):
        assert not self.initialized
        self.initialized = True
        for call in self.callbacks: call(self.image)
    def get_function(self, name): return SimpleNamespace(module=self, name=name, kernel=SimpleNamespace(handle=(self.handle, name)))
    def get_global_symbol(self, name): return {"__consan_ctl": 4096}[name], 8
class Context:
    device = SimpleNamespace(id=0)
    loaded = []
    def create_module_image(self, image, setup, teardown):
        self.loaded.append(Module(image, setup, teardown))
        return self.loaded[-1]
class _Runtime:
    def get_or_create_context(self, number): return Context()
_runtime = _Runtime()
def get_context(number=None): return _runtime.get_or_create_context(number)
"""
_DRIVER = """
import ctypes
writes = []
class ObjectCode:
    @staticmethod
    def from_cubin(data, *, name=""): return (data, name)
    @staticmethod
    def from_ptx(data, *, name=""): return ("PTX", data, name)
class _Linker:
    lineinfo = False
    def __init__(self, *given): self._object_codes = given
    def complete(self): return "machine code"
    def get_linked_ptx(self): return b"linked with lines" if self.lineinfo else b"linked"
def host_to_device(to, start, size): writes.append((to, ctypes.string_at(start, size)))
"""
_DISPATCHER = """
from numba.cuda import codegen
asked = []
def compile_cuda(function, result, args, debug=False, lineinfo=False): asked.append((debug, lineinfo))
class Cache:
    def load_overload(self, *args): return "from disk"
    def save_overload(self, *args): raise AssertionError("written")
class CUDACache(Cache):
    def load_overload(self, *args): return super().load_overload(*args)
class _Kernel:
    def __init__(self, library): self._codelibrary, self.entry_name = library, library._entry_name
    def launch(self, args, grid, block, stream=0, sharedmem=0):
        function = self._codelibrary.get_cufunc()
        if grid == 1: return function
        return launch(stream, LaunchConfig(grid, block, None, sharedmem), function.kernel, *args)
def launch(stream, config, kernel, *args): return kernel.handle
class LaunchConfig:
    def __init__(self, *config): self.grid, self.block, self.cluster, self.shmem_size = config
"""
# What the launches of recorded kernels need of cuda.core.
_DRIVER_CALLS = """
def cuKernelGetLibrary(handle): return 0, handle[0]
def cuKernelGetName(handle): return 0, handle[1].encode()
def cuLibraryGetModule(library): return 0, 5000 + library
"""
_CORE = """
class Kernel:
    @staticmethod
    def from_handle(handle): return type("", (), {"handle": handle})
"""
CORE = {"cuda": "", "cuda.core": _CORE, "cuda.bindings": "", "cuda.bindings.driver": _DRIVER_CALLS}
FILES = {
    "numba": "",
    "numba.cuda": "from numba.cuda import dispatcher",
    "numba.cuda.core": "",
    "numba.cuda.core.config": "ENABLE_CUDASIM = True",
    "numba.cuda.cudadrv": "",
    "numba.cuda.cudadrv.driver": _DRIVER,
    "numba.cuda.cudadrv.devices": _DEVICES,
    "numba.cuda.codegen": _CODEGEN,
    "numba.cuda.dispatcher": _DISPATCHER,
    "numba.cuda.simulator": "",
    "numba.cuda.simulator.kernel": "",
}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for adapter, version in ((NumbaAdapter, "0.30.4"), (NumbaStandIn, "0.30.4"), (NumbaMlirStandIn, "0.6.0")):
        monkeypatch.setattr(adapter, "version", lambda self, version=version: version)
    yield from package(tmp_path / "site", monkeypatch, FILES)


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def adapter(session: FakeSession) -> Iterator[NumbaAdapter]:
    adapter = NumbaAdapter()
    adapter.install(session)
    yield adapter
    adapter.remove()


def numba(name: str) -> Any:
    importlib.import_module("numba.cuda")
    return importlib.import_module(f"numba.cuda.{name}")


def launch(library: Any) -> Any:
    return numba("dispatcher")._Kernel(library).launch((), 1, 1)


def library(*args: Any, **kwargs: Any) -> Any:
    return numba("codegen").CUDACodeLibrary(*args, **kwargs)


def test_nothing_is_imported_by_installing(adapter: NumbaAdapter) -> None:
    assert "numba" not in sys.modules


def test_the_instrumented_cubin_is_loaded_and_planted_once(adapter: NumbaAdapter, session: FakeSession) -> None:
    kernel = library("k")
    kernel._setup_functions.append(lambda image: session.notes.append(f"set up {image[1]}"))
    first = launch(kernel)
    assert first.module.image == (b"instrumented:ptx .loc", "k")
    assert launch(kernel) is first
    assert numba("cudadrv.driver").writes == [(4096, b"8 bytes!")]
    assert (session.names, session.notes, session.listed) == (["k"], ["set up k"], [])
    assert [prepared.framework for prepared in session.attached] == ["numba"]
    assert kernel._cufunc_cache == {}


def test_launches_tell_their_buffers(adapter: NumbaAdapter, session: FakeSession) -> None:
    def add(x: Any, out: Any) -> None: ...

    array = SimpleNamespace(__cuda_array_interface__={"data": (4096, False), "shape": (8,), "typestr": "<f4"})
    kernel = numba("dispatcher")._Kernel(library("k"))
    kernel.py_func = add
    kernel.launch((3, array), 1, 1)
    assert session.launches == [("k", "entry", (Argument("argument 2", 4096, 32, "out", 4),))]


def test_lines_are_asked_for(adapter: NumbaAdapter) -> None:
    dispatcher = numba("dispatcher")
    dispatcher.compile_cuda(None, None, (), debug=False, lineinfo=False)
    dispatcher.compile_cuda(None, None, (), debug=True, lineinfo=False)
    assert dispatcher.asked == [(False, True), (True, False)]


def test_the_cache_on_disk_is_neither_read_nor_written(adapter: NumbaAdapter) -> None:
    cache = numba("dispatcher").CUDACache()
    assert cache.load_overload("sig", None) is None
    cache.save_overload("sig", None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"files": ("a.cu",)}, "linked with other code"),
        ({"cudadevrt": True}, "linked with other code"),
        ({"options": ("g",), "ptxes": ("a", "b")}, "a debug build of several modules"),
    ],
)
def test_what_cannot_be_instrumented_is_listed_at_every_launch(
    adapter: NumbaAdapter, session: FakeSession, options: dict[str, Any], reason: str
) -> None:
    kernel = library("k", **options)
    assert [launch(kernel), launch(kernel)] == ["plain k"] * 2
    assert session.listed == [f"entry ({reason})"] * 2
    assert session.names == []


def test_a_device_function_is_left_to_numba(adapter: NumbaAdapter) -> None:
    assert library("f", entry=None).get_cufunc() == "plain f"


def test_a_kernel_compiled_before_has_no_lines(adapter: NumbaAdapter, session: FakeSession) -> None:
    launch(library("old", ptxes=("ptx",)))
    assert session.notes == ["old was compiled before consan was installed: what is found in it has no source lines"]


def test_remove_restores_everything(adapter: NumbaAdapter) -> None:
    kernel = library("k")
    launch(kernel)
    adapter.remove()
    adapter.remove()
    assert launch(kernel) == "plain k"
    dispatcher = numba("dispatcher")
    assert dispatcher.CUDACache().load_overload() == "from disk"
    assert "save_overload" not in vars(dispatcher.CUDACache)
    assert not hasattr(dispatcher.compile_cuda, "__wrapped__")


def test_install_twice_wraps_once(adapter: NumbaAdapter, session: FakeSession) -> None:
    adapter.install(session)
    adapter.install(session)
    launch(library("k", files=("a.cu",)))
    assert session.listed == ["entry (linked with other code)"]


def test_a_later_session_gets_the_loaded_kernel(adapter: NumbaAdapter, session: FakeSession) -> None:
    kernel = library("k")
    first = launch(kernel)
    adapter.remove()
    later = FakeSession()
    adapter.install(later)
    assert launch(kernel) is first
    assert [prepared.session for prepared in later.attached] == [later]
    assert len(numba("cudadrv.devices").Context.loaded) == 1


def test_a_later_session_with_other_hooks_loads_it_anew(adapter: NumbaAdapter) -> None:
    kernel = library("k")
    first = launch(kernel)
    adapter.install(FakeSession(hooks="others:"))
    second = launch(kernel)
    assert second is not first
    assert launch(kernel) is second


@pytest.mark.parametrize(
    ("version", "gone", "message"),
    [
        ("0.20.1", "", r"Numba-CUDA 0\.20\.1 is not known to consan, which was tried with 0\.30: its kernels are not checked$"),
        ("0.31.0", "compile_cuda", r"Numba-CUDA 0\.31\.0 .* not checked; it lacks numba\.cuda\.dispatcher\.compile_cuda$"),
    ],
)
def test_an_unknown_version_is_listed(
    site: Path, session: FakeSession, monkeypatch: pytest.MonkeyPatch, version: str, gone: str, message: str
) -> None:
    monkeypatch.setattr(NumbaAdapter, "version", lambda self: version)
    if gone:
        path = site / "numba" / "cuda" / "dispatcher.py"
        path.write_text(path.read_text().replace(gone, "renamed"))
    adapter = NumbaAdapter()
    adapter.install(session)
    assert launch(library("k")) == "plain k"
    adapter.remove()
    assert len(session.notes) == 1
    assert re.match(message, session.notes[0])
    assert session.listed == ["entry (unknown version of Numba-CUDA)"]


def test_a_newer_version_with_all_seams_is_used(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumbaAdapter, "version", lambda self: "0.31.0")
    adapter = NumbaAdapter()
    adapter.install(session)
    launch(library("k"))
    adapter.remove()
    assert session.notes == ["Numba-CUDA 0.31.0 is newer than 0.30, the newest that consan was tried with"]
    assert session.names == ["k"]


def test_the_simulator_is_noted(adapter: NumbaAdapter, session: FakeSession) -> None:
    importlib.import_module("numba.cuda.simulator.kernel")
    assert "simulator runs the kernels" in session.notes[0]


def test_a_recorded_launch_is_the_sessions(
    site: Path, adapter: NumbaAdapter, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.records = True
    kernel, stream = numba("dispatcher")._Kernel(library("k")), SimpleNamespace(__cuda_stream__=lambda: (0, 7))
    for _ in package(site, monkeypatch, CORE):
        assert kernel.launch((), (2, 1), (32, 1), stream, 64) == (70, "entry")
        session.other = "hooks"
        assert kernel.launch((), (2, 1), (32, 1), stream, 64) == 9
        later = FakeSession(records=True)
        adapter.install(later)
        kernel.launch((), (2, 1), (32, 1), stream)
    launch = session.recorded[0]
    assert (launch.entry, launch.grid, launch.block, launch.cluster) == ("entry", (2, 1, 1), (32, 1, 1), (1, 1, 1))
    assert (launch.stream, launch.module.handle, launch.shared) == (7, 5070, 64)
    assert [len(each.recorded) for each in (session, later)] == [2, 1]
    assert numba("cudadrv.driver").writes == []


def code(kind: str) -> Any:
    return SimpleNamespace(code_type=kind, code=kind.encode(), name="kernel")


def test_without_a_gpu_what_it_links_is_ptx(session: FakeSession) -> None:
    stand_in, driver = NumbaStandIn(), numba("cudadrv.driver")
    stand_in.install(session)
    complete = driver._Linker.complete
    assert complete(driver._Linker(code("ptx"))) == ("PTX", b"ptx", "kernel")
    assert complete(driver._Linker(code("ltoir"), code("ltoir"))) == ("PTX", b"linked with lines", "kernel")
    with pytest.raises(NotSupported, match=r"^the kernel is linked with fatbin and ltoir, which the virtual machine cannot do"):
        complete(driver._Linker(code("fatbin"), code("ltoir")))
    numba("dispatcher").compile_cuda(None, None, ())
    assert numba("dispatcher").asked == [(False, True)]
    assert numba("dispatcher").CUDACache().load_overload() is None
    stand_in.remove()
    assert driver._Linker(code("ptx")).complete() == "machine code"


def test_the_other_numba_is_asked_for_lines(session: FakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = dict.fromkeys(("numba_cuda_mlir", "numba_cuda_mlir.numba_cuda", "numba_cuda_mlir.numba_cuda.cudadrv"), "")
    dispatcher = """
class MLIRDispatcher:
    def __init__(self, function, targetoptions=None): self.options = targetoptions
    def enable_caching(self): raise AssertionError("written")
"""
    files |= {"numba_cuda_mlir.numba_cuda.cudadrv.driver": _DRIVER, "numba_cuda_mlir.descriptor": dispatcher}
    for _ in package(tmp_path / "other", monkeypatch, files):
        stand_in = NumbaMlirStandIn()
        stand_in.install(session)
        made = importlib.import_module("numba_cuda_mlir.descriptor").MLIRDispatcher
        made(None).enable_caching()
        options: list[dict[str, bool]] = [{}, {"debug": True}]
        assert [made(None, each).options for each in options] == [{"debug": False, "lineinfo": True}, {"debug": True}]
        assert importlib.import_module("numba_cuda_mlir.numba_cuda.cudadrv.driver")._Linker(code("ptx")).complete()[0] == "PTX"
        stand_in.remove()
