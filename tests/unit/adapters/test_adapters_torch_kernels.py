"""The adapter for `torch.cuda._compile_kernel` against a miniature of torch 2.13's `torch.cuda._utils`, and against the installed torch.

tests/gpu/test_torch_kernels.py needs a GPU.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from seam_fakes import FakeSession, kernel_of, package

from consan._errors import NotSupported
from consan.adapters.torch_kernels import TorchKernelAdapter, TorchKernelRefused
from consan.instrument.ptx import parse
from consan.toolchain import find

_UTILS = """
import ctypes, itertools
from types import SimpleNamespace
log, handles = [], itertools.count(100)
_real = SimpleNamespace(nvrtcGetCUBIN=lambda text: b"cubin of " + text, nvrtcGetPTX=lambda text: b"ptx of " + text + b"\\0")
def _get_gpu_rtc_library(): return _real
def _nvrtc_compile(kernel_source, kernel_name, compute_capability=None, cuda_include_dirs=None, nvcc_options=None, auto_pch=False):
    library = _get_gpu_rtc_library()
    log.append((kernel_source, nvcc_options))
    return library.nvrtcGetCUBIN(kernel_source.encode()), "_Z" + kernel_name
class _CudaModule:
    def __init__(self, module): self._module, self._kernels = module, {}
    def __getattr__(self, name):
        self._kernels[name] = _CudaKernel(ctypes.c_void_p(1000 + self._module.value), self._module)
        return self._kernels[name]
class _CudaKernel:
    def __init__(self, func, module): self.func, self.module = func, module
    def __call__(self, grid=(1, 1, 1), block=(1, 1, 1), args=None, shared_mem=0, stream=None): return ("launched", self.func.value)
def _cuda_load_module(ptx, kernel_names=None):
    module = ctypes.c_void_p(next(handles))
    log.append(ptx)
    return {name: _CudaKernel(ctypes.c_void_p(7), module) for name in kernel_names} if kernel_names else _CudaModule(module)
"""
_CUDA = """
from types import SimpleNamespace
from torch.cuda import _utils
def current_stream(): return SimpleNamespace(cuda_stream=5)
def _compile_kernel(kernel_source, kernel_name, compute_capability=None, cuda_include_dirs=None, nvcc_options=None):
    from torch.cuda._utils import _cuda_load_module, _nvrtc_compile
    ptx, mangled = _nvrtc_compile(kernel_source, kernel_name, compute_capability, cuda_include_dirs, nvcc_options)
    return _cuda_load_module(ptx, [mangled])[mangled]
"""
SOURCE = "__global__ void " + "k(float *x) {}"  # in two parts: not found verbatim in this file, so a copy is written


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for adapter in (TorchKernelAdapter, TorchKernelRefused):
        monkeypatch.setattr(adapter, "version", lambda self: "2.13.0")
    yield from package(tmp_path / "site", monkeypatch, {"torch": "", "torch.cuda": _CUDA, "torch.cuda._utils": _UTILS})


@pytest.fixture
def session(tmp_path: Path) -> FakeSession:
    return made(tmp_path)


def made(folder: Path, hooks: str = "hooks:") -> FakeSession:
    """A session whose backend remembers what is written where."""
    session = FakeSession(hooks=hooks, source_dir=folder / "run")
    written: list[Any] = []
    session.backend = SimpleNamespace(
        device_name="Fake GPU",
        written=written,
        function=kernel_of,
        symbol=lambda module, name: (4096 + module.handle, 8),
        write=lambda address, data: written.append((address, data)),
    )
    return session


@pytest.fixture
def adapter(site: Path, session: FakeSession) -> Iterator[TorchKernelAdapter]:
    adapter = TorchKernelAdapter()
    adapter.install(session)
    yield adapter
    adapter.remove()


def torch() -> Any:
    return importlib.import_module("torch.cuda")


def test_nothing_is_imported_by_installing(adapter: TorchKernelAdapter) -> None:
    assert "torch" not in sys.modules


def test_source_becomes_ptx_with_lines_then_an_instrumented_cubin(adapter: TorchKernelAdapter, session: FakeSession) -> None:
    options = ["-DA"]
    kernel = torch()._compile_kernel(SOURCE, "k", nvcc_options=options)
    (source, flags), loaded = torch()._utils.log
    assert source.startswith('#line 1 "')
    assert source.endswith("\n" + SOURCE)
    assert (flags, options) == (["-DA", "-lineinfo"], ["-DA"])
    assert loaded == b"instrumented:ptx of " + source.encode()
    assert session.backend.written == [(4096 + kernel.module.value, b"8 bytes!")]
    assert kernel(grid=(1, 1, 1)) == ("launched", 7)
    assert (session.names, session.listed) == (["k"], [])


def test_ptx_that_the_program_brings_is_instrumented_and_a_binary_listed(adapter: TorchKernelAdapter, session: FakeSession) -> None:
    load = torch()._utils._cuda_load_module
    load(".version 8.0")
    binary = load(b"\x7fELF", ["k"])["k"]
    assert torch()._utils.log == [b"instrumented:.version 8.0", b"\x7fELF"]
    binary()
    binary()
    assert session.listed == ["a kernel of torch.cuda._compile_kernel"] * 2


def test_remove_restores_everything(adapter: TorchKernelAdapter, session: FakeSession) -> None:
    utils = torch()._utils
    adapter.remove()
    adapter.remove()
    torch()._compile_kernel(SOURCE, "k")()
    assert utils.log[-1] == b"cubin of " + SOURCE.encode()
    assert not [name for name in dir(utils) if hasattr(getattr(utils, name), "__wrapped__")]
    assert (session.names, session.listed) == ([], [])


def test_a_later_session_gets_the_loaded_kernel(adapter: TorchKernelAdapter, tmp_path: Path) -> None:
    kernel = torch()._compile_kernel(SOURCE, "k")
    later, others = made(tmp_path), made(tmp_path, hooks="others:")
    adapter.install(later)
    kernel()
    assert ([prepared.session for prepared in later.attached], later.listed) == ([later], [])
    adapter.install(others)
    kernel()
    assert (others.attached, len(others.listed)) == ([], 1)


def test_a_recorded_launch_is_the_sessions(adapter: TorchKernelAdapter, session: FakeSession) -> None:
    session.records = True
    kernel = torch()._compile_kernel(SOURCE, "k")
    assert kernel(grid=(2, 1, 1), block=(32, 1, 1), args=[1], shared_mem=64) == ("launched", 7)
    session.other = "hooks"
    assert kernel((3, 1, 1), stream=SimpleNamespace(cuda_stream=9)) == ("launched", 9)
    assert kernel.func.value == 7
    looked_up = torch()._utils._cuda_load_module(".version 8.0").second
    assert looked_up() == ("launched", 9)
    first, second, third = session.recorded
    assert (first.entry, first.grid, first.block, first.stream, first.shared) == ("_Zk", (2, 1, 1), (32, 1, 1), 5, 64)
    assert (first.module.handle, second.grid, second.stream) == (kernel.module.value, (3, 1, 1), 9)
    assert (third.entry, third.module.handle) == ("second", looked_up.module.value)
    assert (session.backend.written, session.listed) == ([], [])
    with pytest.raises(NotSupported, match="not looked up by torch"):
        type(kernel)(ctypes.c_void_p(11), kernel.module)()


def test_a_launch_has_its_parameters(adapter: TorchKernelAdapter, session: FakeSession) -> None:
    session.records = True
    kernel = torch()._compile_kernel(SOURCE, "k")
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry _Zk(.param .u64 x, .param .s32 n, .param .f64 f) { ret; }"
    session.attached[0].instrumented.module = parse(text)
    tensor, pinned = (SimpleNamespace(is_cuda=is_cuda, data_ptr=lambda: 4096) for is_cuda in (True, False))
    for args in ([tensor, -1, 1.5], [pinned, -1, 1.5], [tensor, 1.5, -1], [tensor, -1], None):
        kernel(args=args)
    known, *unknown = (launch.args() for launch in session.recorded)
    assert known == ((4096).to_bytes(8, "little"), b"\xff" * 4, struct.pack("<d", 1.5))
    assert unknown == [None] * 4


def test_outside_of_its_session_a_recorded_kernel_runs_plain(adapter: TorchKernelAdapter, session: FakeSession, tmp_path: Path) -> None:
    session.records = True
    kernel = torch()._compile_kernel(SOURCE, "k")
    adapter.remove()
    assert kernel() == ("launched", 8)
    later, others = made(tmp_path), made(tmp_path, hooks="others:")
    later.records = others.records = True
    adapter.install(later)
    assert kernel() == ("launched", 7)
    adapter.install(others)
    assert kernel() == ("launched", 8)
    assert [len(each.recorded) for each in (session, later, others)] == [0, 1, 0]
    assert len(others.listed) == 1


@pytest.mark.parametrize(("version", "gone"), [("2.7.1", ""), ("2.14.0", "_cuda_load_module")])
def test_an_unknown_version_is_listed(site: Path, session: FakeSession, monkeypatch: pytest.MonkeyPatch, version: str, gone: str) -> None:
    monkeypatch.setattr(TorchKernelAdapter, "version", lambda self: version)
    if gone:
        for path in ((site / "torch" / "cuda" / "__init__.py"), (site / "torch" / "cuda" / "_utils.py")):
            path.write_text(path.read_text().replace(gone, "_renamed"))
    adapter = TorchKernelAdapter()
    adapter.install(session)
    torch()._compile_kernel(SOURCE, "k")()
    adapter.remove()
    assert session.listed == ["a kernel of torch.cuda._compile_kernel"]
    assert session.notes[0].startswith(f"torch.cuda._compile_kernel {version} is not known to consan")


def test_without_a_gpu_one_sentence_says_so(site: Path, session: FakeSession) -> None:
    refused = TorchKernelRefused()
    refused.install(session)
    with pytest.raises(NotSupported, match=r"^torch\.cuda\._compile_kernel needs a GPU"):
        torch()._compile_kernel(SOURCE, "k")
    refused.remove()
    assert torch()._compile_kernel(SOURCE, "k").func.value == 7


@pytest.mark.filterwarnings("default")
def test_the_installed_torch_compiles_through_the_seam(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own `_nvrtc_compile` with the real NVRTC, which gives PTX also where it is asked for machine code; no device is needed."""
    pytest.importorskip("torch", reason="torch is not installed")
    if (nvrtc := find.locate(find.NVRTC)) is None:
        pytest.skip("NVRTC is not installed")
    utils = importlib.import_module("torch.cuda._utils")
    monkeypatch.setattr(utils, "_get_gpu_rtc_library", lambda: ctypes.CDLL(str(nvrtc)))
    monkeypatch.setattr("torch.utils.cpp_extension.include_paths", lambda device: [])
    adapter = TorchKernelAdapter()
    adapter.install(session)
    try:
        if session.notes:
            pytest.skip(session.notes[0])
        cubin, mangled = utils._nvrtc_compile("template <typename T> " + SOURCE.replace("float", "T"), "k<float>", compute_capability="90")
    finally:
        adapter.remove()
    (text,) = session.texts
    assert cubin == b"instrumented:" + text.encode()
    assert f".entry {mangled}(" in text
    assert ".target sm_90" in text
    assert ".loc" in text
