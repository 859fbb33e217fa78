"""The stand-in driver through its library, as a program calls it: what is served, what is refused by name, and a launch that is checked."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import plant
from reversed_tile import HEADER, REVERSE

from consan._errors import EnvironmentFailure
from consan.backends import driver
from consan.libcuda import calls, cudart_calls, library, stream_calls
from consan.libcuda.build import DRIVER, RUNTIMES
from consan.libcuda.driver import SpecialMemory
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.session.session_options import open_session
from consan.tensormap.encoding import decode

SOURCE = Path(calls.__file__).parent / "source"
WITH_COUNTER = f"{HEADER}.visible .global .align 4 .u32 counter = 7;{REVERSE}"
Word = ctypes.c_uint64
COMPILER = shutil.which("cc") or shutil.which("gcc")
# As a library of Python ends: its exception is set, the interpreter may be released, and its arrays are freed.
ENDS_WITH_AN_EXCEPTION = """
extern void *PyExc_KeyError, *PyEval_SaveThread(void), *PyErr_Occurred(void);
extern void PyErr_SetNone(void *), PyErr_Clear(void), PyEval_RestoreThread(void *);
int ends(int (*call)(void *), void *result, int releases) {
    PyErr_SetNone(PyExc_KeyError);
    void *state = releases ? PyEval_SaveThread() : 0;
    int code = call(result);
    if (releases) PyEval_RestoreThread(state);
    int kept = PyErr_Occurred() == PyExc_KeyError;
    PyErr_Clear();
    return kept ? code : -1;
}
"""


class Program:
    """What a program in C would call."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")  # the one that is loaded

    def code(self, name: str, *values: Any) -> int:
        return int(getattr(self.library, name)(*(Word(each) if isinstance(each, int) else each for each in values)))

    def __call__(self, name: str, *values: Any) -> int:
        """The result that the call writes to its first parameter."""
        result = Word()
        assert self.code(name, ctypes.byref(result), *values) == 0, name
        return result.value

    def do(self, name: str, *values: Any) -> None:
        assert self.code(name, *values) == 0, name

    def launch(self, kernel: int, *values: int, shared: int = 0, stream: int = 0) -> int:
        words = [Word(value) for value in values]
        places = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        return self.code("cuLaunchKernel", kernel, 1, 1, 1, 128, 1, 1, shared, stream, places, 0)


@pytest.fixture
def program(session: Session) -> Iterator[Program]:
    library.enter(session)
    yield Program()
    library.leave()


def loaded(program: Program, barrier: str = "bar.sync 0;") -> int:
    return program("cuModuleLoadData", ctypes.c_char_p(WITH_COUNTER.replace("BARRIER", barrier).encode()))


@pytest.mark.parametrize(("arch", "capability"), [("sm_80", 80), ("sm_90", 90), ("sm_100", 100)])
def test_programs_compile_for_the_architecture_of_the_option(arch: str, capability: int) -> None:
    """The attributes 75 and 76 are the two numbers of the compute capability."""
    session = open_session(SessionOptions(device="cpu", triton_arch=arch))
    library.enter(session)
    major, minor = (Program()("cuDeviceGetAttribute", number, 0) & 0xFFFFFFFF for number in (75, 76))
    library.leave()
    session.close()
    assert major * 10 + minor == capability
    assert session.options.chip.removesuffix("a") == arch


@pytest.mark.parametrize(("barrier", "verdict"), [("bar.sync 0;", "clean"), ("", "violations")])
def test_a_launch_is_checked_and_computes(program: Program, session: Session, barrier: str, verdict: str) -> None:
    kernel = program("cuModuleGetFunction", loaded(program, barrier), ctypes.c_char_p(b"reverse"))
    given, found = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    source, to, stream = program("cuMemAlloc_v2", 512), program("cuMemAlloc_v2", 512), program("cuStreamCreate", 0)
    program.do("cuMemcpyHtoDAsync_v2", source, given.ctypes.data, 512, stream)
    assert program.launch(kernel, to, source, stream=stream) == 0
    program.do("cuMemcpyDtoHAsync_v2", found.ctypes.data, to, 512, stream)
    program.do("cuStreamSynchronize", stream)
    np.testing.assert_array_equal(found, given[::-1])
    report = session.report()
    assert (report.verdict, [each.kind for each in report.findings]) == (verdict, ["data-race"] if barrier == "" else [])


def test_what_is_not_served_fails_and_says_its_name(program: Program, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    address, status, name = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_char_p(b"cuGraphAddBatchMemOpNode")
    assert program.code("cuGetProcAddress_v2", name, ctypes.byref(address), 12000, 0, ctypes.byref(status)) == 0
    call = ctypes.CFUNCTYPE(ctypes.c_int, Word, Word)(address.value or 0)
    assert call(0, 0) == calls.NOT_SUPPORTED
    assert "cuGraphAddBatchMemOpNode failed: consan's stand-in driver does not serve it" in capsys.readouterr().err
    assert any("cuGraphAddBatchMemOpNode" in note for note in session.report().notes)
    assert program.code("cuMemAllocManaged", ctypes.byref(Word()), 64, 1) == calls.NOT_SUPPORTED
    assert "cuMemAllocManaged failed: managed memory is not served in a Python process" in capsys.readouterr().err
    assert program.code("cuMemExportToShareableHandle", 0, 64, 0, 0) == calls.NOT_SUPPORTED
    assert "cuMemExportToShareableHandle failed: consan's stand-in driver does not serve it" in capsys.readouterr().err
    runtime_call = RUNTIMES["libcudart.so.13"].load().cudaIpcGetMemHandle
    assert runtime_call(None, None) == calls.NOT_SUPPORTED
    assert "cudaIpcGetMemHandle failed: consan's stand-in driver does not serve it" in capsys.readouterr().err
    table, runtime = ctypes.c_void_p(), bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
    for identity in (bytes(16), runtime):
        assert capsys.readouterr().err == ""
        assert program.code("cuGetExportTable", ctypes.byref(table), ctypes.create_string_buffer(identity)) == calls.NOT_SUPPORTED
    assert capsys.readouterr().err == "", "libraries of Python go on without it; tests/native has a program that does not"


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("releases", [0, 1])
def test_a_call_is_served_while_an_exception_is_on_its_way(program: Program, tmp_path: Path, releases: int) -> None:
    """The exception stays."""
    (tmp_path / "ends.c").write_text(ENDS_WITH_AN_EXCEPTION)
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(tmp_path / "ends.so"), str(tmp_path / "ends.c")], check=True)
    count = ctypes.c_int()
    ends = ctypes.PyDLL(str(tmp_path / "ends.so")).ends
    assert ends(program.library.cuDeviceGetCount, ctypes.byref(count), releases) == 0
    assert count.value == 1


def test_machine_code_is_refused_with_a_sentence(program: Program, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    module = Word()
    image = ctypes.create_string_buffer(b"\x7fELF" + bytes(60))
    assert program.code("cuModuleLoadData", ctypes.byref(module), image) == calls.NO_BINARY
    assert "cuModuleLoadData failed: the module is machine code; the virtual machine runs PTX only" in capsys.readouterr().err
    kernel, to = program("cuModuleGetFunction", loaded(program), ctypes.c_char_p(b"reverse")), program("cuMemAlloc_v2", 512)
    assert program.launch(kernel, to, to + 0) == 0
    assert session.report().verdict == "incomplete", "the program may have gone on without that module"


def test_each_module_has_its_own_variables(program: Program) -> None:
    first, second, size, name = Word(), Word(), Word(), ctypes.c_char_p(b"counter")
    program.do("cuModuleGetGlobal_v2", ctypes.byref(first), ctypes.byref(size), loaded(program), name)
    program.do("cuMemsetD32_v2", first.value, 9, 1)
    program.do("cuModuleGetGlobal_v2", ctypes.byref(second), ctypes.byref(size), loaded(program), name)
    found = np.zeros(1, np.uint32)
    program.do("cuMemcpyDtoH_v2", found.ctypes.data, second.value, 4)
    assert (found[0], size.value) == (7, 4)


def test_pinned_memory_is_known_by_any_of_its_bytes() -> None:
    special, chance = SpecialMemory(), np.random.default_rng(1)
    blocks = {int(begin + 1) * 100: int(chance.integers(1, 100)) for begin in chance.permutation(50)}
    for begin, nbytes in blocks.items():
        special.pin(begin, nbytes)
    for begin in list(blocks)[::3]:
        special.unpin(begin)
        del blocks[begin]
    pinned = {address for begin, nbytes in blocks.items() for address in range(begin, begin + nbytes)}
    assert {address for address in range(50, 5200) if special.pinned_at(address)} == pinned


def test_memory_is_named_as_a_framework_has_told(program: Program, session: Session) -> None:
    library.driver().parameter_names["reverse"] = ("out", "source")
    kernel = program("cuModuleGetFunction", loaded(program, ""), ctypes.c_char_p(b"reverse"))
    to, source = program("cuMemAlloc_v2", 256), program("cuMemAlloc_v2", 512)
    assert program.launch(kernel, to, source) == 0
    assert any("(out)" in str(each) for each in session.report().findings), session.report().findings


def test_machine_code_stands_for_the_ptx_that_its_compiler_has_left(program: Program, tmp_path: Path) -> None:
    """An ELF file names its kernels; its tables are behind them, and the last one ends the file."""
    text = WITH_COUNTER.replace("BARRIER", "bar.sync 0;")
    (tmp_path / "reverse.ptx").write_text(text)
    (tmp_path / "other.ptx").write_text(text.replace("reverse", "other"))
    library.keep_ptx(tmp_path)
    names = b".text.reverse\0"
    head = b"\x7fELF".ljust(32, b"\0") + (0).to_bytes(8, "little") + (64).to_bytes(8, "little")
    image = head.ljust(58, b"\0") + len(names).to_bytes(2, "little") + (1).to_bytes(2, "little") + b"\0\0" + names
    module = program("_cudaLibraryLoadData", ctypes.create_string_buffer(image))
    kernel = program("_cudaLibraryGetKernel", module, ctypes.c_char_p(b"reverse"))
    program.do("_cudaKernelSetAttributeForDevice", kernel, 8, 100 << 10, 0)
    assert program("cuFuncGetAttribute", 8, kernel) == 100 << 10
    library.keep_ptx_of(image, text.replace("reverse", "of_this_code"))  # kernels of several compilations may have one name
    module = program("_cudaLibraryLoadData", ctypes.create_string_buffer(image))
    assert program("_cudaLibraryGetKernel", module, ctypes.c_char_p(b"of_this_code"))


def test_addresses_of_functions_follow_the_version(program: Program) -> None:
    def found(name: bytes, version: int) -> int:
        address = ctypes.c_void_p()
        assert program.code("cuGetProcAddress_v2", ctypes.c_char_p(name), ctypes.byref(address), version, 0, None) == 0
        return address.value or 0

    def exported(name: str) -> int:
        return ctypes.cast(getattr(program.library, name), ctypes.c_void_p).value or 0

    assert found(b"cuMemAlloc", 12000) == exported("cuMemAlloc_v2")
    assert found(b"cuCtxCreate", 13000) == exported("cuCtxCreate_v4") != found(b"cuCtxCreate", 11040) == exported("cuCtxCreate_v3")
    assert found(b"cuGetProcAddress", 11030) == exported("cuGetProcAddress")
    assert found(b"cuLaunchKernel", 4000) == exported("cuLaunchKernel")
    assert found(b"cuUnheardOf", 12000) == found(b"cuUnheardOf", 12000) != found(b"cuUnheardOfToo", 12000)


def test_variables_attributes_and_names(program: Program) -> None:
    module = loaded(program)
    kernel, size, value = program("cuModuleGetFunction", module, ctypes.c_char_p(b"reverse")), Word(), ctypes.c_uint32()
    address = program("cuModuleGetGlobal_v2", ctypes.byref(size), module, ctypes.c_char_p(b"counter"))
    program.do("cuMemcpyDtoH_v2", ctypes.byref(value), address, 4)
    assert (size.value, value.value) == (4, 7)
    program.do("cuPointerGetAttribute", ctypes.byref(value), 2, address)
    assert value.value == 2, "it is device memory, as XLA asks"
    program.do("cuPointerGetAttribute", ctypes.byref(value), 9, address)
    assert value.value == 0, "of device 0"
    context = Word()
    program.do("cuPointerGetAttribute", ctypes.byref(context), 1, address)
    assert context.value == program("cuDevicePrimaryCtxRetain", 0)
    assert program.code("cuPointerGetAttribute", ctypes.byref(value), 9, ctypes.addressof(value)) == calls.INVALID_VALUE
    assert program("cuFuncGetAttribute", 1, kernel) == 512
    assert program.launch(kernel, 0, 0, shared=100 << 10) == calls.INVALID_VALUE
    program.do("cuFuncSetAttribute", kernel, 8, 100 << 10)
    assert program("cuFuncGetAttribute", 8, kernel) == 100 << 10
    assert program("cuKernelGetLibrary", kernel) == module
    assert program.code("cuModuleGetFunction", ctypes.byref(size), module, ctypes.c_char_p(b"other")) == calls.NOT_FOUND
    name = ctypes.c_char_p()
    program.do("cuFuncGetName", ctypes.byref(name), kernel)
    assert name.value == b"reverse"


def test_memory_is_filled_copied_and_freed(program: Program) -> None:
    memory, found = program("cuMemAlloc_v2", 64), np.zeros(16, np.uint32)
    program.do("cuMemsetD32_v2", memory, 0x01020304, 16)
    program.do("cuMemsetD2D8_v2", memory + 4, 16, 0xFF, 4, 3)
    program.do("cuMemcpy", found.ctypes.data, memory, 64)
    assert list(found[:6]) == [0x01020304, 0xFFFFFFFF, *[0x01020304] * 3, 0xFFFFFFFF]
    kind = ctypes.c_uint32()
    program.do("cuPointerGetAttribute", ctypes.byref(kind), 2, memory + 8)
    assert kind.value == 2
    assert program.code("cuMemcpy", memory + 60, memory, 64) == calls.INVALID_VALUE
    program.do("cuMemFree_v2", memory)
    assert program.code("cuMemFree_v2", memory) == calls.INVALID_VALUE


def test_a_tensor_map_is_encoded_as_a_driver_does(program: Program) -> None:
    place = ctypes.create_string_buffer(128)
    dims, strides = (Word * 2)(64, 32), (Word * 1)(128)
    box, steps = (ctypes.c_uint32 * 2)(64, 8), (ctypes.c_uint32 * 2)(1, 1)
    address = program("cuMemAlloc_v2", 4096)
    arguments = (place, 6, 2, address, dims, strides, box, steps, 0, 3, 0, 0)
    program.do("cuTensorMapEncodeTiled", *arguments)
    found = decode(place.raw)
    assert (found.dtype, found.address, found.dims, found.strides) == ("f16", address, (64, 32), (128,))
    assert (found.box, found.swizzle) == ((64, 8), 128)
    box[0] = 257
    assert program.code("cuTensorMapEncodeTiled", *arguments) == calls.INVALID_VALUE


def test_without_a_session_the_driver_is_shut_down() -> None:
    library.load()
    assert Program().code("cuInit", 0) == calls.DEINITIALIZED
    text = ctypes.c_char_p()
    Program().do("cuGetErrorName", calls.DEINITIALIZED, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_DEINITIALIZED"
    for name in ("cuMemFree_v2", "cuEventDestroy_v2", "cuStreamQuery", "cuStreamDestroy_v2", "cuModuleUnload", "cuGraphExecDestroy"):
        assert Program().code(name, 1 << 40) == 0, "a library that ends prints each error"
    assert Program().code("cuStreamSynchronize", 0) == calls.DEINITIALIZED


def test_the_library_has_each_call_that_is_served() -> None:
    """The C file has the names of the rest, which it serves by itself."""
    listed = re.findall(r"^(?:CALL|NODE|ENDS)\((\w+)\)$", (SOURCE / "calls.h").read_text(), re.MULTILINE)
    listed += [f"_{name}" for name in re.findall(r"^RUNTIME\((\w+)\)$", (SOURCE / "runtime.h").read_text(), re.MULTILINE)]
    runtime = {
        f"_{name}" for name in re.findall(r"^(?:CALL|HOST|NODE|ENDS)\((\w+)\)$", (SOURCE / "cudart_calls.h").read_text(), re.MULTILINE)
    }
    own = re.findall(r"^EXPORT int (cu\w+)\(", (SOURCE / DRIVER.root).read_text(), re.MULTILINE)
    refused = re.findall(r"^CALL\((\w+)\)$", (SOURCE / "refused.h").read_text(), re.MULTILINE)
    assert not {*refused} & {*listed, *own}
    unserved = re.findall(r"^CALL\((\w+)\)$", (SOURCE / "refused_runtime.h").read_text(), re.MULTILINE)
    assert unserved
    assert not {f"_{name}" for name in unserved} & runtime
    assert len(listed) == len(set(listed))
    assert cudart_calls.CALLS is calls.CALLS
    memory = re.findall(r'"(_c\w+)"', "".join((SOURCE / each).read_text() for each in (DRIVER.root, "remote.h", "host_functions.h")))
    assert set(calls.CALLS) == {
        *listed,
        *runtime,
        *memory,
        "cuFuncGetName",
        "_cudaRegisterFatBinary",
        *("_cudaInitModule", "_cudaMalloc3DArray", "_cudaMallocMipmappedArray"),
    }
    assert "cuFuncGetName" in own
    assert not set(own) & set(listed)
    assert all(re.fullmatch(r">?[iIQfs]", part) for call in calls.CALLS.values() for part in call.layout)


def test_consan_does_not_take_it_for_a_driver(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.backends.driver.LIBRARIES", ("libcuda.so.1",))  # the one that is loaded
    with pytest.raises(EnvironmentFailure, match="no NVIDIA driver"):
        driver.driver.__wrapped__()


def test_a_planted_fault_leaves_no_other_functions_among_those_that_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    served = dict(calls.CALLS)
    plant(monkeypatch, stream_calls, "waited=waited", "waited=True", "EventHandle.begun")
    assert served == calls.CALLS
