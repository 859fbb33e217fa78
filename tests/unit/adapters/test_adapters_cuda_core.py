"""The cuda.core adapter against a miniature of cuda.core 1.2.2 and of the driver's calls: the same names and signatures.

test_adapters_cuda_core_real.py meets the installed one without a device, tests/gpu/test_cuda_core_adapter.py a GPU.
"""

from __future__ import annotations

import ctypes
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
from consan.adapters.cuda_core import CudaCoreAdapter
from consan.adapters.driven.driver import DriverStandIn
from consan.instrument.ptx import parse
from consan.reports.source.variables import Argument

_CORE = """
import itertools
from dataclasses import dataclass
__name__ = "cuda.core.cu13"
log, numbers = [], itertools.count(100)
@dataclass
class ProgramOptions:
    name: str = "default_program"
    arch: str = "sm_90"
    lineinfo: bool = None
    debug: bool = None
    relocatable_device_code: bool = None
    link_time_optimization: bool = None
class Kernel:
    def __init__(self, library, name): self.handle = (library, name)
    @staticmethod
    def from_handle(handle): return Kernel("other", handle)
class ObjectCode:
    @classmethod
    def _init(cls, code, code_type, name="", symbol_mapping=None):
        self = ObjectCode.__new__(ObjectCode)
        self.code, self.code_type, self.name, self.symbol_mapping, self.handle = code, code_type, name, symbol_mapping or {}, next(numbers)
        return self
    @staticmethod
    def from_cubin(module, *, name="", symbol_mapping=None): return ObjectCode._init(module, "cubin", name, symbol_mapping)
    @staticmethod
    def from_ptx(module, *, name="", symbol_mapping=None): return ObjectCode._init(module, "ptx", name, symbol_mapping)
    def get_kernel(self, name): return Kernel(self.handle, self.symbol_mapping.get(name, name))
class Program:
    def __init__(self, code, code_type, options=None):
        self.code, self.code_type, self.options = code, code_type, options or ProgramOptions()
    def compile(self, target_type, name_expressions=(), logs=None, *, cache=None):
        log.append((self.code, self.options, target_type, cache))
        mapping = {name: "_Z" + name for name in name_expressions}
        return ObjectCode._init(f"{target_type} of {self.code}".encode(), target_type, self.options.name, mapping)
@dataclass
class LaunchConfig:
    grid: tuple
    block: tuple
    cluster: tuple = None
    shmem_size: int = 0
    is_cooperative: bool = False
class Linker:
    def __init__(self, *object_codes, options=None): self.given = object_codes
def launch(stream, config, kernel, *args): return ("launched", kernel.handle, args)
class Device:
    def set_current(self): return self
"""
_GRAPH = """
class GraphDefinition:
    kind = "definition"
    def __init__(self, *args): self.args = args
"""
_DRIVER = """
writes = []
def cuKernelGetLibrary(handle): return 0, handle[0]
def cuKernelGetName(handle): return 0, handle[1].encode()
def cuLibraryGetGlobal(library, name): return 0, {b"__consan_ctl": 4096 + library}[name], 8
def cuLibraryGetModule(library): return 0, 5000 + library
def cuMemcpyHtoD(to, data, size): writes.append((to, data, size)); return 0,
"""
SOURCE = "__global__ void " + "k(float *x) {}"  # in two parts: not found verbatim in this file, so a copy is written
FILES = {
    "cuda": "",
    "cuda.core": _CORE + "import importlib\ngraph = importlib.import_module('cuda.core.graph')\n",
    "cuda.core.graph": _GRAPH,
    "cuda.core.cu13": "",
    "cuda.bindings": "",
    "cuda.bindings.driver": _DRIVER,
}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for adapter in (CudaCoreAdapter, DriverStandIn):
        monkeypatch.setattr(adapter, "version", lambda self: "1.2.2")
    yield from package(tmp_path / "site", monkeypatch, FILES)


@pytest.fixture
def session(tmp_path: Path) -> FakeSession:
    return FakeSession(source_dir=tmp_path / "run")


@pytest.fixture
def adapter(session: FakeSession) -> Iterator[CudaCoreAdapter]:
    adapter = CudaCoreAdapter()
    adapter.install(session)
    yield adapter
    adapter.remove()


def core() -> Any:
    return importlib.import_module("cuda.core")


def writes() -> Any:
    return importlib.import_module("cuda.bindings.driver").writes


def launch(code: Any, name: str = "k") -> Any:
    return core().launch("stream", "config", code.get_kernel(name), 1, 2)


def test_nothing_is_imported_by_installing(adapter: CudaCoreAdapter) -> None:
    assert "cuda.core" not in sys.modules


@pytest.mark.parametrize("target", ["cubin", "ptx"])
def test_source_becomes_ptx_with_lines_then_an_instrumented_cubin(adapter: CudaCoreAdapter, session: FakeSession, target: str) -> None:
    program = core().Program(SOURCE, "c++", core().ProgramOptions(arch="sm_90a"))
    code = program.compile(target, name_expressions=("k<int>",), cache="the user's")
    source, options, compiled_to, cache = core().log[0]
    assert re.fullmatch(rf'#line 1 ".*"\n{re.escape(SOURCE)}', source)
    assert (options.lineinfo, options.arch, compiled_to, cache) == (True, "sm_90a", "ptx", None)
    assert (code.code_type, code.code) == ("cubin", f"instrumented:ptx of {source}".encode())
    assert code.symbol_mapping == {"k<int>": "_Zk<int>"}
    assert session.names == ["k"]


def test_the_control_block_is_planted_before_the_first_launch(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    code = core().Program(SOURCE, "c++").compile("cubin")
    assert writes() == []
    for _ in range(2):
        assert launch(code) == ("launched", (code.handle, "k"), (1, 2))
    assert writes() == [(4096 + code.handle, b"8 bytes!", 8)]
    assert session.listed == []


def test_launches_tell_their_buffers(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    code = core().Program(SOURCE, "c++").compile("cubin")
    core().launch("stream", "config", code.get_kernel("k"), 1, SimpleNamespace(handle=8192, size=64))
    assert session.launches == [("k", "k", (Argument("argument 2", 8192, 64),))]


def test_ptx_is_instrumented(adapter: CudaCoreAdapter, session: FakeSession, tmp_path: Path) -> None:
    path = tmp_path / "mine.ptx"
    path.write_text(".version 8.0")
    ours = [
        core().Program(".version 8.0", "ptx").compile("cubin"),
        core().ObjectCode.from_ptx(b".version 8.0\0", name="mine"),
        core().ObjectCode.from_ptx(str(path)),
    ]
    for code in ours:
        launch(code)
    assert [code.code for code in ours] == [b"instrumented:.version 8.0"] * 3
    assert session.listed == []
    assert session.names[1] == "mine"


def test_what_comes_as_binary_is_listed_with_its_launches(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    code = core().ObjectCode.from_cubin(b"\x7fELF")
    launch(code)
    launch(code)
    assert session.listed == ["k", "k"]


def test_relocatable_programs_are_left_alone_and_the_linker_gets_plain_ptx(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    part = core().Program(SOURCE, "c++", core().ProgramOptions(relocatable_device_code=True)).compile("ptx")
    assert part.code == f"ptx of {SOURCE}".encode()
    whole = core().Program(SOURCE, "c++").compile("ptx")
    assert [code.code_type for code in core().Linker(part, whole).given] == ["ptx", "ptx"]


def test_results_are_still_objects_of_the_class_that_programs_name(adapter: CudaCoreAdapter) -> None:
    assert isinstance(core().Program(SOURCE, "c++").compile("cubin"), core().ObjectCode)


def test_numbas_own_use_is_not_met_twice(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    code = core().ObjectCode.from_cubin(b"x")
    inside = {"__name__": "numba.cuda.dispatcher", "core": core(), "kernel": code.get_kernel("k")}
    exec("core.launch(0, 0, kernel); made = core.ObjectCode.from_ptx(b'.version 8.0')", inside)
    assert (session.listed, session.names) == ([], [])
    assert inside["made"].code_type == "ptx"


def test_remove_restores_everything(adapter: CudaCoreAdapter, session: FakeSession) -> None:
    taken = core().Program
    program = taken(SOURCE, "c++")
    adapter.remove()
    adapter.remove()
    assert program.compile("cubin").code.startswith(b"cubin of")
    assert taken(SOURCE, "c++").compile("cubin").code == f"cubin of {SOURCE}".encode()
    assert core().Program is not taken
    assert not hasattr(core().launch, "__wrapped__")
    assert session.names == []


def test_a_later_session_gets_the_loaded_code(adapter: CudaCoreAdapter) -> None:
    code = core().Program(SOURCE, "c++").compile("cubin")
    launch(code)
    later = FakeSession()
    adapter.install(later)
    launch(code)
    assert [prepared.session for prepared in later.attached] == [later]
    others = FakeSession(hooks="others:")
    adapter.install(others)
    launch(code)
    assert (others.attached, others.listed) == ([], ["k"])
    assert "other settings" in others.notes[0]


def test_imported_first_is_noted(session: FakeSession) -> None:
    core()
    adapter = CudaCoreAdapter()
    adapter.install(session)
    adapter.remove()
    assert session.notes == ["cuda.core was imported before consan was installed: names taken from it before are not checked"]


def test_names_taken_in_an_earlier_session_are_ours(adapter: CudaCoreAdapter) -> None:
    taken = core().Program
    later = FakeSession()
    adapter.install(later)
    taken(SOURCE, "c++").compile("cubin")
    assert (later.notes, later.names) == ([], ["k"])


@pytest.mark.parametrize(("version", "gone"), [("0.3.1", ""), ("2.0.0", "class Linker")])
def test_an_unknown_version_is_listed(site: Path, session: FakeSession, monkeypatch: pytest.MonkeyPatch, version: str, gone: str) -> None:
    monkeypatch.setattr(CudaCoreAdapter, "version", lambda self: version)
    if gone:
        path = site / "cuda" / "core" / "__init__.py"
        path.write_text(path.read_text().replace(gone, "class Gone"))
    adapter = CudaCoreAdapter()
    adapter.install(session)
    launch(core().Program(SOURCE, "c++").compile("cubin"))
    adapter.remove()
    assert session.listed == ["k"]
    assert len(session.notes) == 1
    assert session.notes[0].startswith(f"cuda.core {version} is not known to consan, which was tried with 1.2: its kernels are not checked")
    assert session.notes[0].endswith("it lacks Linker" if gone else "not checked")


# -- recorded kernels -----------------------------------------------------------------------------------------------------------------

STREAM = SimpleNamespace(__cuda_stream__=lambda: (0, 7))


@pytest.fixture
def recording(session: FakeSession, adapter: CudaCoreAdapter) -> FakeSession:
    session.records = True
    return session


def launch_at(code: Any, stream: Any = STREAM, **config: Any) -> Any:
    """What the driver is asked to launch."""
    config = {"grid": (4, 2, 1), "block": (32, 1, 1), **config}
    return core().launch(stream, core().LaunchConfig(**config), code.get_kernel("k"), 1)[1]


def test_a_recorded_launch_is_the_sessions(recording: FakeSession) -> None:
    code = core().Program(SOURCE, "c++").compile("cubin")
    assert launch_at(code, shmem_size=64) == (code.handle, "k")
    recording.other = "hooks"
    assert launch_at(code, SimpleNamespace(stream=STREAM), cluster=(2, 1, 1)) == ("other", 9)
    core().launch(STREAM, {"grid": 3, "block": 8}, code.get_kernel("k"))
    first, second, third = recording.recorded
    assert (first.entry, first.grid, first.block, first.cluster) == ("k", (4, 2, 1), (32, 1, 1), (1, 1, 1))
    assert (first.stream, first.module.handle, first.shared) == (7, 5000 + code.handle, 64)
    assert (second.grid, second.cluster, second.stream) == ((8, 2, 1), (2, 1, 1), 7)
    assert (third.grid, third.block) == ((3, 1, 1), (8, 1, 1))
    assert len(recording.attached) == 1
    assert writes() == []


def test_a_launch_has_its_parameters(recording: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    code = core().Program(SOURCE, "c++").compile("cubin")
    launch_at(code)
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }"
    recording.attached[0].instrumented.module = parse(text)
    (launch,) = recording.recorded
    assert launch.args() is None  # this cuda.core has no such class

    class Holder:
        def __init__(self, args: tuple[int, ...]) -> None:
            self.values = [ctypes.c_uint64(value) for value in args]
            self.pointers = (ctypes.c_void_p * len(args))(*map(ctypes.addressof, self.values))
            self.ptr = ctypes.addressof(self.pointers)

    monkeypatch.setitem(sys.modules, "cuda.core._kernel_arg_handler", SimpleNamespace(ParamHolder=Holder))
    assert launch.args() == ((1).to_bytes(4, "little"),)


def test_outside_of_its_session_a_recorded_kernel_runs_plain(adapter: CudaCoreAdapter, recording: FakeSession) -> None:
    launch_there = core().launch
    known, fresh = (core().Program(SOURCE, "c++").compile("cubin") for _ in range(2))
    launch_at(known)
    adapter.remove()
    for code in (known, fresh):
        _, handle, _ = launch_there(STREAM, core().LaunchConfig((1, 1, 1), (1, 1, 1)), code.get_kernel("k"))
        assert handle == ("other", 8)
    others = FakeSession(hooks="others:", records=True)
    adapter.install(others)
    assert launch_at(known) == ("other", 8)
    assert (others.listed, others.recorded, len(recording.recorded)) == (["k"], [], 1)


def test_where_cuda_core_came_first_kernels_run_as_they_are(site: Path) -> None:
    core()
    session, adapter = FakeSession(records=True), CudaCoreAdapter()
    adapter.install(session)
    launch(core().Program(SOURCE, "c++").compile("cubin"))
    adapter.remove()
    assert ["import it later" in prepared.unseen for prepared in session.attached] == [True]


def test_nodes_of_a_graph_definition_get_no_log(adapter: CudaCoreAdapter, recording: FakeSession) -> None:
    graph = importlib.import_module("cuda.core.graph")
    core().Program(SOURCE, "c++").compile("cubin")
    assert isinstance(graph.GraphDefinition, type)
    assert graph.GraphDefinition.kind == "definition"
    with pytest.raises(NotSupported, match=r"GraphDefinition are not recorded: capture .*, or use --engine inline"):
        graph.GraphDefinition()


def test_a_program_of_graph_definitions_runs_as_it_is(site: Path) -> None:
    session, adapter = FakeSession(records=True), CudaCoreAdapter()
    adapter.install(session)
    core()
    graph = importlib.import_module("cuda.core.graph")
    definition = vars(graph).get("GraphDefinition", graph.GraphDefinition)
    code = core().Program(SOURCE, "c++").compile("cubin")
    assert not session.attached
    assert isinstance(definition(3), definition)
    assert len(session.attached) == 1
    launch(code)
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = graph.other
    adapter.remove()
    assert ["capture the launches" in prepared.unseen for prepared in session.attached] == [True]
    assert isinstance(graph.GraphDefinition(3), vars(graph)["GraphDefinition"])


def test_without_a_gpu_programs_are_compiled_to_ptx_with_lines(session: FakeSession) -> None:
    stand_in = DriverStandIn()
    stand_in.install(session)
    made = core().Program(SOURCE, "c++", core().ProgramOptions(name="mine")).compile("cubin", ("k",))
    (code, options, target, _), *_ = core().log
    assert (made.code_type, made.symbol_mapping, target, options.lineinfo) == ("ptx", {"k": "_Zk"}, "ptx", True)
    assert re.match(r"#line 1 \"[^\"]+\"\n__global__", code)
    given = core().Program(".version 8.0", "ptx").compile("cubin")
    assert (given.code, given.code_type) == (b".version 8.0", "ptx")
    plain = core().Program
    stand_in.remove()
    assert core().Program is not plain
