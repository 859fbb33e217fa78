"""What host code of CuTe DSL finds in the library beside calls of CUDA, and arrays of the host as tensors of the device."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from reversed_tile import HEADER, REVERSE

from consan.adapters.driven.host_tensors import HostTensors
from consan.libcuda import library
from consan.session.planning.options import SessionOptions
from consan.session.session_options import open_session

RaiseText = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
RaiseParts = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int)
Load = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))
LoadToDevice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int)


@pytest.fixture
def runtime() -> Any:
    library.load()
    return ctypes.CDLL("libcuda.so.1")


@pytest.mark.parametrize("failing", ["", "load", "device"])
def test_kernels_are_loaded_by_the_first_call(runtime: Any, failing: str) -> None:
    done, raised = list[str](), list[tuple[bytes, bytes]]()

    @Load
    def load(library: Any) -> int:
        done.append("load")
        library[0] = 42
        return 209 if failing == "load" else 0

    @LoadToDevice
    def load_to_device(library: Any, device: int) -> int:
        done.append(f"{library[0]} to {device}")
        return 719 if failing == "device" else 0

    handle, report = ctypes.c_uint64(0), RaiseText(lambda kind, text: raised.append((kind, text)))
    codes = [runtime.cuda_dialect_init_library_once(ctypes.byref(handle), load, load_to_device, report) for _ in range(2)]
    if failing:
        code = {"load": 209, "device": 719}[failing]
        assert (codes, handle.value, raised) == ([code] * 2, 0, [(b"CUDADialectError", b"CUDA Error Code: %d" % code)] * 2)
        return
    assert (codes, handle.value, done, raised) == ([0, 0], 42, ["load", "42 to 0"], [])
    runtime.cuda_dialect_unload_library_once(ctypes.byref(handle))
    assert handle.value == 0


def test_errors_have_the_form_that_the_package_reads(runtime: Any) -> None:
    raised = list[tuple[bytes, bytes]]()
    report = RaiseParts(lambda kind, parts, count: raised.append((kind, b"".join(parts[at] for at in range(count)))))
    runtime.CuteDSLRT_TVMFFISetRaisedCudaError(report, 801)
    runtime.CuteDSLRT_TVMFFISetRaisedCudaLaunchError(report)
    assert raised == [(b"CUDADialectError", b"CUDA Error Code: 801"), (b"CUDADialectError", b"CUDA Error Code: 1")]
    name = runtime.cuda_dialect_get_error_name
    name.restype = ctypes.c_char_p
    assert (name(801), name(12345)) == (b"CUDA_ERROR_NOT_SUPPORTED", b"unrecognized error code")


@pytest.mark.parametrize(
    ("function", "code", "status"), [("assert_success", 0, 0), ("assert_success", 801, -6), ("print_on_error", 801, 0)]
)
def test_host_code_that_cannot_raise_says_the_error(function: str, code: int, status: int) -> None:
    """As behind the call that encodes a tensor map."""
    program = (
        f"import ctypes; from consan.libcuda import library; library.load(); ctypes.CDLL('libcuda.so.1').cuda_dialect_{function}({code})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "CUDA_ERROR_NOT_SUPPORTED" in done.stderr) == (status, code == 801), done.stderr


@pytest.fixture
def tensors() -> Iterator[HostTensors]:
    session = open_session(SessionOptions(device="cpu"))
    library.enter(session)
    yield HostTensors(library.driver())
    library.leave()
    session.close()


def address_of(tensors: HostTensors, array: Any) -> int:
    """What DLPack gives, which says that it is on the first CUDA device."""
    exported = tensors.on_device(array)
    capsule, pointer = exported.__dlpack__(), ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address, device = (ctypes.c_uint64 * 2).from_address(pointer(capsule, b"dltensor") or 0)
    assert (exported.__dlpack_device__(), device) == ((2, 0), 2)
    return address


def test_arrays_of_the_host_have_their_contents_on_the_device(tensors: HostTensors) -> None:
    """Views share memory with their array, the device sees what the host has written, and the host what the device has."""
    driver, rows = tensors.driver, np.zeros((2, 128), np.uint32)
    source, out = address_of(tensors, rows[0]), address_of(tensors, rows[1])
    assert out - source == 512
    text = ctypes.create_string_buffer(f"{HEADER}{REVERSE.replace('BARRIER', 'bar.sync 0;')}".encode())
    cuda = ctypes.CDLL("libcuda.so.1")
    module, kernel = ctypes.c_uint64(), ctypes.c_uint64()
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"reverse") == 0
    words = [ctypes.c_uint64(out), ctypes.c_uint64(source)]
    places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, words))
    for first in (0, 1000):
        rows[0] = np.arange(first, first + 128)
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, None, places, None) == 0
        np.testing.assert_array_equal(rows[1], rows[0][::-1])
    assert [each.verdict for each in [driver.session.report()]] == ["clean"]


def test_device_memory_goes_with_the_array(tensors: HostTensors) -> None:
    first = np.ones(64, np.float32)
    begin = address_of(tensors, first)
    assert address_of(tensors, first[8:]) == begin + 32
    del first
    gc.collect()
    second = np.ones(64, np.float32)
    address_of(tensors, second)
    assert len(tensors.driver.special.managed) == 1
    assert tensors.on_device(7) == 7


def test_memory_that_the_host_has_freed_is_left_alone(tensors: HostTensors) -> None:
    """Another object may lie there by now: in CUTLASS's benchmark of its grouped GEMM the heap was overwritten."""
    first = np.ones(64, np.float32)
    address_of(tensors, first)
    tensors.driver.work(0, lambda stream: None)
    assert len(tensors.driver.special.managed) == 1
    del first
    gc.collect()
    tensors.driver.work(0, lambda stream: None)
    assert not tensors.driver.special.managed


def test_memory_that_goes_while_the_device_works_is_left_alone(tensors: HostTensors) -> None:
    """The garbage collector may free it in the middle of a launch."""
    array, written = [np.ones(64, np.float32)], list[int]()
    address_of(tensors, array[0])
    place = array[0].ctypes.data

    class Memory(type(tensors.driver.memory)):
        def write(self, address: int, data: bytes) -> None:
            written.append(address)

    tensors.driver.memory = Memory()
    tensors.driver.work(0, lambda stream: None)
    assert written == [place]
    tensors.driver.work(0, lambda stream: array.clear())
    assert written == [place]
