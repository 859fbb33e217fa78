"""The CuPy adapter against a miniature of CuPy 14.2's compile path (no GPU): the same names, the same calls, in the same order.

tests/gpu/test_cupy_adapter.py runs the real one.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cupy_fakes import COMPILER, FILES
from seam_fakes import FakeSession

from consan._errors import NotSupported
from consan.adapters.cupy import CupyAdapter
from consan.adapters.cupy_driver import CupyDriver, CupyLaunch
from consan.backends.base import DeviceLost
from consan.instrument.ptx import parse


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, text in FILES.items():
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
    return FakeSession(source_dir=tmp_path / "run", records=True)


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


def test_the_source_compiles_to_ptx_without_optimisation_behind_the_session(adapter: CupyAdapter, session: FakeSession) -> None:
    compiler()._compile_module_with_cache(SOURCE)
    (text,) = session.unoptimised.texts.values()
    adapter.remove()
    assert text.compiled("other source", False).startswith("ptx:")
    source, options, method = compiler().log[-1]
    assert (source.endswith("other source"), "-G" in options, method) == (True, True, "ptx")


def test_name_expressions_keep_their_mapping(adapter: CupyAdapter) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, name_expressions=("k<int>",))
    assert module.mapping == {"k<int>": "_Zk<int>"}


def test_debug_options_are_not_doubled(adapter: CupyAdapter) -> None:
    compiler()._compile_module_with_cache(SOURCE, ("--device-debug", "--generate-line-info"))
    assert "-lineinfo" not in compiler().log[-1][1]


def test_relocatable_code_goes_on_as_ptx(adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE, ("-rdc=true",))
    assert module.loaded.startswith(b"hooks:ptx:#line")
    assert module.loaded.endswith(b"\0")
    assert "its kernels may launch others" in session.attached[-1].unseen


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
    later = FakeSession(source_dir=tmp_path / "later", records=True)
    adapter.install(later)
    assert [prepared.plain for prepared in later.attached] == [prepared.plain for prepared in session.attached]
    assert [prepared.session for prepared in later.attached] == [later]
    assert importlib.import_module("cupy.cuda.runtime").writes == [(4096, b"8 bytes!", 1)] * 2
    assert later.notes == []


def test_a_later_session_with_other_hooks_lists_them(adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    compiler()._compile_module_with_cache(SOURCE)
    adapter.remove()
    later = FakeSession(source_dir=tmp_path / "later", records=True, hooks="other:")
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
        (site / "cuda" / "compiler.py").write_text(COMPILER.replace("def _get_arch()", "def _renamed()"))
    adapter = CupyAdapter()
    adapter.install(session)
    with pytest.raises(NotSupported, match=message):
        importlib.import_module("cupy")
    adapter.remove()


def test_older_cupy_without_cache_backend(site: Path, session: FakeSession, tmp_path: Path) -> None:
    old = COMPILER.replace("_compile_using_nvrtc_no_warning", "compile_using_nvrtc_").replace("def compile_using_nvrtc(", "def unused(")
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


# -- where launches are seen ----------------------------------------------------------------------------------------------------------


class Launcher:
    """Stands for CuPy's calls of the driver."""

    def __init__(self, drivers: list[CupyDriver]) -> None:
        self._drivers, self.made, self.status = drivers, list[int](), 0

    def launch(self, module: Any, name: str = "k", *where: int) -> int:
        """Launch kernel 7 of a module; `made` has the kernels that the driver gets."""
        (driver,) = self._drivers
        driver.kernels[7] = module.ptr, name
        return driver.launched(CupyLaunch(7, (2, 1, 1), (32, 1, 1), 64, 5, self._make, *where))

    def _make(self, kernel: int) -> int:
        self.made.append(kernel)
        return self.status


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Launcher:
    taken: list[CupyDriver] = []
    monkeypatch.setattr(CupyDriver, "take_over", lambda driver: driver in taken or taken.append(driver) is None)
    return Launcher(taken)


def test_a_recorded_launch_is_the_sessions(launcher: Launcher, adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE)
    assert importlib.import_module("cupy.cuda.runtime").writes == []
    assert launcher.launch(module) == 0
    (launch,) = session.recorded
    assert (launch.entry, launch.grid, launch.block, launch.cluster) == ("k", (2, 1, 1), (32, 1, 1), (1, 1, 1))
    assert (launch.stream, launch.shared) == (5, 64)
    assert launch.module.handle == module.ptr
    session.other = "hooks"
    launcher.launch(module)
    assert launcher.made == [7, 9]


def test_launches_of_other_modules_are_cupys(launcher: Launcher, adapter: CupyAdapter, session: FakeSession, tmp_path: Path) -> None:
    (tmp_path / "mine.cubin").write_bytes(b"\x7fELF1234")
    binary = importlib.import_module("cupy._core.raw").RawModule(str(tmp_path / "mine.cubin")).module
    launches_others = compiler()._compile_module_with_cache(SOURCE, ("-rdc=true",))
    for module in (binary, launches_others):
        launcher.launch(module)
    assert (launcher.made, session.recorded) == ([7, 7], [])
    assert [prepared.recorded for prepared in session.attached] == [None]


def test_a_refused_launch_is_refused(launcher: Launcher, adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE)
    launcher.status = 701
    assert launcher.launch(module) == 701


def test_a_broken_context_is_the_drivers_error(
    launcher: Launcher, adapter: CupyAdapter, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = compiler()._compile_module_with_cache(SOURCE)

    def lost(*launch: Any) -> Any:
        raise DeviceLost("an illegal address", code=700, name="CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(session, "framework_launch", lost)
    assert launcher.launch(module) == 700


def test_outside_of_its_session_a_recorded_kernel_runs_plain(
    launcher: Launcher, adapter: CupyAdapter, session: FakeSession, tmp_path: Path
) -> None:
    module = compiler()._compile_module_with_cache(SOURCE)
    adapter.remove()
    launcher.launch(module)
    later = FakeSession(source_dir=tmp_path / "later", records=True)
    adapter.install(later)
    launcher.launch(module)
    adapter.remove()
    other = FakeSession(source_dir=tmp_path / "other", records=True, hooks="other:")
    adapter.install(other)
    launcher.launch(module)
    assert launcher.made == [8, 7, 8]
    assert [len(each.recorded) for each in (session, later, other)] == [0, 1, 0]
    assert other.listed == ["k"]


def test_a_launch_has_its_parameters(launcher: Launcher, adapter: CupyAdapter, session: FakeSession) -> None:
    module = compiler()._compile_module_with_cache(SOURCE)
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u32 n) { ret; }"
    session.attached[0].instrumented.module = parse(text)
    values = ctypes.c_uint64(5), ctypes.c_uint32(6)
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    launcher.launch(module, "k", ctypes.addressof(pointers))
    launcher.launch(module)
    known, unknown = (launch.args() for launch in session.recorded)
    assert (known, unknown) == ((bytes(values[0]), bytes(values[1])), None)
