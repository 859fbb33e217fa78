"""The CuPy adapter against a miniature of CuPy 14.2's compile path (no GPU): the same names, the same calls, in the same order.

tests/gpu/test_cupy_adapter.py runs the real one.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from consan._errors import NotSupported
from consan.adapters.cupy import CupyAdapter

_COMPILER = """
import sys
from types import SimpleNamespace
from cupy.cuda import function
runtime = SimpleNamespace(is_hip=False)
log = []
_kernel_cache_backend = SimpleNamespace(load=lambda name: sys.exit("cache read"), save=lambda *a: sys.exit("cache written"))
def _get_arch(): return "90"
def _get_arch_for_options_for_nvrtc(arch=None): return f"-arch=sm_{arch}", "cubin"
def _compile_using_nvrtc_no_warning(source, options=(), arch=None, filename="kern.cu", name_expressions=None, log_stream=None,
                                    cache_in_memory=False, jitify=None, method=None):
    if method is None:
        option, method = _get_arch_for_options_for_nvrtc(arch)
        options += (option,)
    log.append((source, options, method))
    mapping = {name: "_Z" + name for name in name_expressions or ()} or None
    return f"{method}:{source}".encode() + b"\\0", mapping
def compile_using_nvrtc(source, options=(), arch=None):
    return _compile_using_nvrtc_no_warning(source, options, arch)
def compile_using_nvcc(source, options=(), arch=None, filename="kern.cu", code_type="cubin", separate_compilation=False, log_stream=None):
    log.append((source, options, code_type))
    return f"{code_type}:{source}".encode()
def _compile_module_with_cache(source, options=(), *, arch=None, backend="nvrtc", name_expressions=None, to_ltoir=False):
    if to_ltoir:
        return _compile_using_nvrtc_no_warning(source, options, arch, "x", None, None, False, None, "lto")[0]
    mod = function.Module()
    if _kernel_cache_backend.load("key") is not None:
        raise AssertionError
    if backend == "nvrtc":
        cubin, mapping = _compile_using_nvrtc_no_warning(source, options, arch or "90", "x.cu", name_expressions)
        mod.mapping = mapping
    else:
        cubin = compile_using_nvcc(source, options, arch, "x.cu", code_type="cubin", separate_compilation="-dc" in options)
    _kernel_cache_backend.save("key", cubin, source)
    mod.load(cubin)
    return mod
"""
_FUNCTION = """
import pathlib
class Module:
    def __init__(self): self.mapping = None; self.loaded = None
    def load(self, data): self.loaded = data
    def load_file(self, path): self.loaded = pathlib.Path(path).read_bytes()
    def get_global_var(self, name): return {"__consan_ctl": 4096}[name]
"""
_RAW = """
import functools
from cupy.cuda import function
@functools.lru_cache
def _get_raw_module(code, path, options=(), *rest):
    mod = function.Module()
    mod.load_file(path)
    return mod
class RawModule:
    def __init__(self, path): self.path = path
    @property
    def module(self): return _get_raw_module(None, self.path, ())
"""
_RUNTIME = """
import ctypes
memcpyHostToDevice = 1
writes = []
def memcpy(dst, src, size, kind): writes.append((dst, ctypes.string_at(src, size), kind))
"""
_THRUST = "def sort(*a): return 'sorted'\ndef get_build_version(): return 1\navailable = True\n"


@dataclass
class FakeSession:
    """Marks what it instruments and notes every call."""

    source_dir: Path
    backend: Any = field(default_factory=lambda: SimpleNamespace(device_name="Fake GPU"))
    names: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    attached: list[Any] = field(default_factory=list)
    hooks: str = "text:"

    def instrument(self, ptx: str, *, name: str) -> Any:
        self.names.append(name)
        hooked = SimpleNamespace(ptx=self.hooks + ptx)
        known = {"plain": ptx, "name": name, "session": self, "framework": "cuda", "recorded": None}
        return SimpleNamespace(cubin=b"instrumented:" + ptx.encode(), instrumented=hooked, **known)

    def attach(self, prepared: Any, set_symbol: Any) -> None:
        self.attached.append(prepared)
        set_symbol("__consan_ctl", b"8 bytes!")

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        self.listed.append(name)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    files = {"__init__": '__version__ = "14.2.0"\n', "cuda/__init__": "", "_core/__init__": "", "cuda/compiler": _COMPILER}
    files |= {"cuda/function": _FUNCTION, "_core/raw": _RAW, "cuda/runtime": _RUNTIME, "cuda/thrust": _THRUST}
    for name, text in files.items():
        path = tmp_path / "site" / "cupy" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "cupy"}
    for name in hidden:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.invalidate_caches()
    yield tmp_path / "site" / "cupy"
    for name in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
        del sys.modules[name]
    sys.modules.update(hidden)


@pytest.fixture
def session(tmp_path: Path) -> FakeSession:
    return FakeSession(tmp_path / "run")


@pytest.fixture
def adapter(site: Path, session: FakeSession) -> Any:
    adapter = CupyAdapter()
    adapter.install(session)
    yield adapter
    adapter.remove()


def compiler() -> ModuleType:
    return importlib.import_module("cupy.cuda.compiler")


SOURCE = "__global__ void " + "k(float *x) {}"  # in two parts: not found verbatim in this file, so a copy is written


def test_nothing_is_imported_by_installing(adapter: CupyAdapter) -> None:
    assert "cupy" not in sys.modules


def test_source_becomes_ptx_with_lines_then_an_instrumented_cubin(adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, ("-DA",))
    source, options, method = compiler().log[-1]
    assert options == ("-DA", "-lineinfo", "-arch=compute_90")
    assert method == "ptx"
    line, rest = source.split("\n", 1)
    assert rest == SOURCE
    assert line.startswith('#line 1 "')
    assert (session.source_dir / Path(line.split('"')[1]).name).read_text() == SOURCE
    assert module.loaded == b"instrumented:ptx:" + source.encode()
    assert session.names == ["k"]


def test_control_block_is_planted_after_the_load(adapter: CupyAdapter, session: FakeSession) -> None:
    compiler()._compile_module_with_cache(SOURCE)
    assert importlib.import_module("cupy.cuda.runtime").writes == [(4096, b"8 bytes!", 1)]
    assert len(session.attached) == 1


def test_name_expressions_keep_their_mapping(adapter: CupyAdapter) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, name_expressions=("k<int>",))
    assert module.mapping == {"k<int>": "_Zk<int>"}


def test_debug_options_are_not_doubled(adapter: CupyAdapter) -> None:
    compiler()._compile_module_with_cache(SOURCE, ("--device-debug", "--generate-line-info"))
    assert "-lineinfo" not in compiler().log[-1][1]


def test_relocatable_code_goes_on_as_ptx(adapter: CupyAdapter) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, ("-rdc=true",))
    assert module.loaded.startswith(b"text:ptx:#line")
    assert module.loaded.endswith(b"\0")


def test_nvcc_backend(adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, backend="nvcc")
    assert compiler().log[-1][1:] == (("-lineinfo",), "ptx")
    assert module.loaded.startswith(b"instrumented:ptx:#line")
    compiler()._compile_module_with_cache(SOURCE, ("-dc",), backend="nvcc")
    assert session.listed == ["k (compiled by nvcc)"]


def test_what_is_not_instrumented_is_listed(adapter: CupyAdapter, session: FakeSession) -> None:
    assert compiler()._compile_module_with_cache(SOURCE, to_ltoir=True) == b"lto:" + SOURCE.encode() + b"\0"
    compiler().compile_using_nvrtc(SOURCE, (), "90")
    assert compiler().log[-1][2] == "cubin"
    assert session.listed == ["k (LTO)", "k (compile_using_nvrtc called directly)"]
    assert session.names == []


def test_ptx_file(adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    path = tmp_path / "mine.ptx"
    path.write_text(".version 8.0")
    raw = importlib.import_module("cupy._core.raw").RawModule(str(path))
    assert raw.module.loaded == b"instrumented:.version 8.0"
    assert raw.module is raw.module
    assert len(session.attached) == 1
    path.write_text(".version 8.1")
    assert raw.module.loaded == b"instrumented:.version 8.1"


def test_binary_file_is_listed(adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    path = tmp_path / "mine.cubin"
    path.write_bytes(b"\x7fELF1234")
    assert importlib.import_module("cupy._core.raw").RawModule(str(path)).module.loaded == b"\x7fELF1234"
    assert session.listed == [f"{path} (a binary: no PTX to instrument)"]
    assert session.attached == []


def test_library_launches_are_counted(adapter: CupyAdapter, session: FakeSession) -> None:
    importlib.import_module("cupy")
    thrust = importlib.import_module("cupy.cuda.thrust")
    assert [thrust.sort(), thrust.sort(), thrust.get_build_version()] == ["sorted", "sorted", 1]
    assert session.listed == ["Thrust sort"] * 2


def test_remove_restores_everything(adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()
    thrust = importlib.import_module("cupy.cuda.thrust")
    adapter.remove()
    adapter.remove()
    assert module._compile_using_nvrtc_no_warning(SOURCE, (), "90")[0].startswith(b"cubin:__global__")
    assert module._get_arch_for_options_for_nvrtc("90") == ("-arch=sm_90", "cubin")
    assert [name for name in vars(module) if hasattr(getattr(module, name), "__wrapped__")] == []
    assert thrust.sort() == "sorted"
    assert session.listed == []


def test_install_twice_wraps_once(adapter: CupyAdapter, session: FakeSession) -> None:
    compiler()
    adapter.install(session)
    adapter.install(session)
    compiler()._compile_module_with_cache(SOURCE)
    assert session.names == ["k"]


def test_a_later_session_gets_the_loaded_kernels(adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    compiler()._compile_module_with_cache(SOURCE)
    adapter.remove()
    later = FakeSession(tmp_path / "later")
    adapter.install(later)
    assert [prepared.plain for prepared in later.attached] == [prepared.plain for prepared in session.attached]
    assert [prepared.session for prepared in later.attached] == [later]
    assert importlib.import_module("cupy.cuda.runtime").writes == [(4096, b"8 bytes!", 1)] * 2
    assert later.notes == []


def test_a_later_session_with_other_hooks_lists_them(adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    compiler()._compile_module_with_cache(SOURCE)
    adapter.remove()
    later = FakeSession(tmp_path / "later", hooks="other:")
    adapter.install(later)
    assert (later.attached, later.listed) == ([], ["k"])
    assert "other settings" in later.notes[0]


def test_cupy_imported_first_is_noted(site: Path, session: FakeSession) -> None:
    compiler()
    adapter = CupyAdapter()
    adapter.install(session)
    adapter.remove()
    assert session.notes == ["CuPy was imported before consan was installed: kernels that it had already compiled are not checked"]


@pytest.mark.parametrize(
    ("version", "message"),
    [("12.3.0", r"CuPy 12\.3\.0 is not supported .* needs CuPy 13\.0 or newer$"), ("99.0", r"CuPy 99\.0 .* it lacks _get_arch$")],
)
def test_version_gate_names_the_version(site: Path, session: FakeSession, version: str, message: str) -> None:
    (site / "__init__.py").write_text(f"__version__ = {version!r}\n")
    if version == "99.0":
        (site / "cuda" / "compiler.py").write_text(_COMPILER.replace("def _get_arch()", "def _renamed()"))
    adapter = CupyAdapter()
    adapter.install(session)
    with pytest.raises(NotSupported, match=message):
        importlib.import_module("cupy")
    adapter.remove()


def test_older_cupy_without_cache_backend(site: Path, session: FakeSession, tmp_path: Path) -> None:
    old = _COMPILER.replace("_compile_using_nvrtc_no_warning", "compile_using_nvrtc_").replace("def compile_using_nvrtc(", "def unused(")
    old = old.replace("compile_using_nvrtc_", "compile_using_nvrtc").replace(
        "_kernel_cache_backend = SimpleNamespace", "def get_cache_dir(): return '/users/cache'\nkept = SimpleNamespace"
    )
    old = old.replace('if _kernel_cache_backend.load("key") is not None', "if get_cache_dir() == get_cache_dir()")
    old = old.replace('_kernel_cache_backend.save("key", cubin, source)', "pass")
    (site / "__init__.py").write_text('__version__ = "13.6.0"\n')
    (site / "cuda" / "compiler.py").write_text(old)
    adapter = CupyAdapter()
    adapter.install(session)
    assert compiler()._compile_module_with_cache(SOURCE).loaded.startswith(b"instrumented:ptx:")
    assert compiler().get_cache_dir().startswith(str(session.source_dir))
    adapter.remove()
    assert compiler().get_cache_dir() == "/users/cache"
