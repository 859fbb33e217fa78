"""The CUDA backend against a fake driver: what is passed to each function, and what each error code becomes.

The fake implements the few entry points in Python over host memory; it checks argument packing, which no compiler checks for ctypes.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import struct
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from consan._errors import EnvironmentFailure, ExitCode, InternalError, UsageError
from consan.backends import driver as api
from consan.backends.base import Backend, DeviceLost
from consan.backends.cuda import CudaBackend, CudaModule

ATTRIBUTES = {16: 132, 75: 9, 76: 0, 81: 228 << 10, 95: 1, 97: 227 << 10, 120: 1}
FUNCTION, STATIC = 0xF00, 1024


def number(argument: Any) -> int:
    return int(getattr(argument, "value", argument) or 0)


class FakeCuda:
    """A driver over host memory; `parameters` are the sizes that the one kernel declares, `codes` forces results."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.codes: dict[str, int] = {}
        self.parameters = [8, 4, 1]
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.attributes: list[tuple[int, int]] = []
        self.required = 0  # CTAs of the cluster that the kernel names
        self.launches: list[dict[str, Any]] = []
        self.busy = 0
        self.depth = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        method = getattr(self, "do_" + name, lambda *_: 0)

        def call(*arguments: Any) -> int:
            self.calls[name] += 1
            return self.codes.get(name) or int(method(*arguments) or 0)

        return call

    def do_cuGetErrorName(self, code: int, out: Any) -> None:
        out._obj.value = f"CUDA_ERROR_{code}".encode()

    def do_cuGetErrorString(self, code: int, out: Any) -> None:
        out._obj.value = f"text of {code}".encode()

    def do_cuDeviceGetAttribute(self, out: Any, attribute: int, _device: int) -> None:
        out._obj.value = ATTRIBUTES[attribute]

    def do_cuDeviceGetName(self, buffer: Any, _size: int, _device: int) -> None:
        buffer.value = b"Fake GPU"

    def do_cuDriverGetVersion(self, out: Any) -> None:
        out._obj.value = 13020

    def do_cuCtxPushCurrent_v2(self, _context: Any) -> None:
        self.depth += 1

    def do_cuCtxPopCurrent_v2(self, _out: Any) -> None:
        self.depth -= 1

    def do_cuMemAlloc_v2(self, out: Any, size: Any) -> None:
        block = ctypes.create_string_buffer(number(size))
        out._obj.value = ctypes.addressof(block)
        self.memory[out._obj.value] = block

    def do_cuMemFree_v2(self, address: Any) -> None:
        del self.memory[number(address)]

    def do_cuMemcpyHtoD_v2(self, target: Any, source: Any, size: Any) -> None:
        ctypes.memmove(number(target), number(source), number(size))

    def do_cuMemcpyDtoH_v2(self, target: Any, source: Any, size: Any) -> None:
        ctypes.memmove(number(target), number(source), number(size))

    def do_cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size: Any, _stream: Any) -> None:
        ctypes.memmove(number(target), number(source), number(size))

    def do_cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, size: Any, _stream: Any) -> None:
        ctypes.memmove(number(target), number(source), number(size))

    def do_cuMemsetD8_v2(self, target: Any, value: Any, size: Any) -> None:
        ctypes.memset(number(target), number(value), number(size))

    def do_cuMemHostGetDevicePointer_v2(self, out: Any, host: Any, _flags: int) -> None:
        out._obj.value = number(host)

    def do_cuModuleLoadDataEx(self, out: Any, cubin: bytes, *_: Any) -> None:
        out._obj.value = 0x300

    def do_cuModuleGetFunction(self, out: Any, _module: Any, name: bytes) -> int:
        out._obj.value = FUNCTION
        return 0 if name == b"k" else 500

    def do_cuModuleGetGlobal_v2(self, address: Any, size: Any, _module: Any, name: bytes) -> int:
        address._obj.value, size._obj.value = 0x7000, 64
        return 0 if name == b"__consan_ctl" else 500

    def do_cuFuncGetParamInfo(self, _function: Any, index: Any, _offset: Any, size: Any) -> int:
        if number(index) >= len(self.parameters):
            return 1
        size._obj.value = self.parameters[number(index)]
        return 0

    def do_cuFuncGetAttribute(self, out: Any, attribute: int, _function: Any) -> None:
        out._obj.value = {0: 512, 1: STATIC, 3: 16, 4: 40, 11: self.required, 12: min(self.required, 1), 13: min(self.required, 1)}[
            attribute
        ]

    def do_cuFuncSetAttribute(self, _function: Any, attribute: int, value: int) -> None:
        self.attributes.append((attribute, value))

    def do_cuStreamIsCapturing(self, stream: Any, out: Any) -> None:
        out._obj.value = int(number(stream) == 0xCAFE)

    def do_cuEventQuery(self, _event: Any) -> int:
        self.busy -= 1
        return 600 if self.busy >= 0 else 0

    def do_cuLaunchKernelEx(self, config: Any, function: Any, parameters: Any, _extra: Any) -> None:
        # Read through raw memory, as C would: offsets are those of CUlaunchConfig and CUlaunchAttribute in cuda.h.
        raw = ctypes.string_at(ctypes.addressof(config._obj), 56)
        *dimensions, shared, stream, attributes, count = struct.unpack("<7I4xQQI4x", raw)
        found = {}
        for i in range(count):
            kind, x, y, z = struct.unpack_from("<i4x3I", ctypes.string_at(attributes + i * 72, 72))
            found[kind] = (x, y, z)
        self.launches.append(
            {
                "grid": tuple(dimensions[:3]),
                "block": tuple(dimensions[3:]),
                "shared": shared,
                "stream": stream,
                "attributes": found,
                "function": number(function),
                "args": [ctypes.string_at(pointer, size) for pointer, size in zip(parameters, self.parameters, strict=False)],
            }
        )


@pytest.fixture
def fake() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def backend(fake: FakeCuda) -> CudaBackend:
    return CudaBackend(driver=api.Driver(fake))


@pytest.fixture
def module(backend: CudaBackend) -> CudaModule:
    return backend.load_cubin(b"\x7fELF")


ARGS = [struct.pack("<Q", 0x123456789A), struct.pack("<i", -2), b"\0"]


def test_is_a_backend(backend: CudaBackend) -> None:
    assert isinstance(backend, Backend)
    assert (backend.device_name, backend.arch, backend.sm_count, backend.driver_version) == ("Fake GPU", "sm_90a", 132, "13.2")


def test_launch_passes_everything(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    backend.launch(module, "k", (8, 2, 3), (32, 4, 1), ARGS, shared=4096, cluster=(2, 1, 1), cooperative=True, stream=0x55)
    assert fake.launches == [
        {
            "grid": (8, 2, 3),
            "block": (32, 4, 1),
            "shared": 4096,
            "stream": 0x55,
            "attributes": {4: (2, 1, 1), 2: (1, 0, 0)},
            "function": FUNCTION,
            "args": ARGS,
        }
    ]


def test_plain_launch_has_no_attributes(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS)
    assert (fake.launches[0]["attributes"], fake.launches[0]["stream"], fake.attributes) == ({}, 0, [])


@pytest.mark.parametrize("args", [ARGS[:2], [*ARGS, b"x"], [ARGS[0], b"12345678", ARGS[2]], []])
def test_wrong_parameters_are_refused(backend: CudaBackend, fake: FakeCuda, module: CudaModule, args: list[bytes]) -> None:
    with pytest.raises(UsageError, match="k takes parameters of 8, 4, 1 bytes, but got"):
        backend.launch(module, "k", (1, 1, 1), (32, 1, 1), args)
    assert fake.launches == []


def test_dynamic_shared_memory_is_allowed_once(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    for _ in range(2):
        backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, shared=100 << 10)
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, shared=200 << 10)
    assert fake.attributes == [(8, 100 << 10), (8, 200 << 10)]


def test_all_the_shared_memory_and_not_a_byte_more(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    most = (227 << 10) - STATIC
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, shared=most)
    with pytest.raises(UsageError, match=f"Fake GPU has {most} left"):
        backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, shared=most + 1)


def test_large_clusters_are_allowed_once(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    for _ in range(2):
        backend.launch(module, "k", (16, 1, 1), (32, 1, 1), ARGS, cluster=(16, 1, 1))
    backend.launch(module, "k", (16, 1, 1), (32, 1, 1), ARGS, cluster=(8, 1, 1))
    assert fake.attributes == [(14, 1)]


def test_a_large_cluster_that_the_kernel_names_itself_is_allowed(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    fake.required = 16
    backend.launch(module, "k", (16, 1, 1), (32, 1, 1), ARGS)
    assert fake.attributes == [(14, 1)]


def test_memory_round_trip(backend: CudaBackend, fake: FakeCuda) -> None:
    address = backend.alloc(64)
    backend.write(address, np.arange(16, dtype=np.uint32)[::2])
    assert np.frombuffer(backend.read(address, 32), np.uint32).tolist() == list(range(0, 16, 2))
    backend.fill(address, 0xAB, 8)
    assert backend.read(address, 9) == b"\xab" * 8 + b"\x04"
    backend.poke(address, b"stop")
    assert backend.peek(address, 4) == b"stop"
    backend.free(address)
    assert fake.memory == {}


def test_ring_is_zero_shared_and_survives(backend: CudaBackend, fake: FakeCuda) -> None:
    address, view = backend.host_ring(10_000)
    assert view.shape == (10_000,)
    assert not view.any()
    ctypes.memmove(address + 5000, b"finding", 7)
    fake.codes["cuCtxSynchronize"] = 700
    with pytest.raises(DeviceLost):
        backend.synchronize()
    backend.close()
    assert view[5000:5007].tobytes() == b"finding"


def test_synchronize_waits(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, stream=0x55)
    fake.busy = 5
    assert backend.synchronize(10.0)
    assert fake.busy < 0


def test_synchronize_gives_up(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS)
    fake.busy = 10**9
    assert not backend.synchronize(0.02)


def test_launch_under_capture_records_no_event(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, stream=0xCAFE)
    assert fake.calls["cuEventRecord"] == 0
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS, stream=0x55)
    assert fake.calls["cuEventRecord"] == 1


@pytest.mark.parametrize("code", [700, 715, 716, 718, 719])
def test_fatal_kernel_error(backend: CudaBackend, fake: FakeCuda, code: int) -> None:
    fake.codes["cuEventQuery"] = code
    with pytest.raises(DeviceLost, match=f"CUDA_ERROR_{code}: text of {code}") as caught:
        backend.synchronize(1.0)
    assert (caught.value.code, caught.value.name) == (code, f"CUDA_ERROR_{code}")


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (720, UsageError, "every CTA resident"),
        (701, UsageError, "more registers or threads"),
        (2, EnvironmentFailure, "out of device memory"),
        (1, InternalError, "cuLaunchKernelEx failed"),
    ],
)
def test_launch_errors(backend: CudaBackend, fake: FakeCuda, module: CudaModule, code: int, kind: type[Exception], text: str) -> None:
    fake.codes["cuLaunchKernelEx"] = code
    with pytest.raises(kind, match=text):
        backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS)
    assert fake.depth == 0


def test_context_is_pushed_and_popped(backend: CudaBackend, fake: FakeCuda) -> None:
    backend.alloc(1)
    assert fake.depth == 0
    assert fake.calls["cuCtxPushCurrent_v2"] == fake.calls["cuCtxPopCurrent_v2"] > 0


def test_names_that_are_not_there(backend: CudaBackend, module: CudaModule) -> None:
    assert backend.symbol(module, "__consan_ctl") == (0x7000, 64)
    with pytest.raises(UsageError, match="no global variable 'other'"):
        backend.symbol(module, "other")
    with pytest.raises(UsageError, match="no kernel 'other'"):
        backend.resources(module, "other")


def test_a_symbol_is_looked_up_once(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    assert {backend.symbol(module, "__consan_ctl") for _ in range(3)} == {(0x7000, 64)}
    assert fake.calls["cuModuleGetGlobal_v2"] == 1


def test_resources(backend: CudaBackend, module: CudaModule) -> None:
    found = backend.resources(module, "k")
    assert (found.registers, found.static_shared) == (40, STATIC)


def test_cubin_that_the_driver_is_too_old_for(backend: CudaBackend, fake: FakeCuda) -> None:
    fake.codes["cuModuleLoadDataEx"] = 209
    with pytest.raises(EnvironmentFailure, match=r"driver \(CUDA 13.2\) does not load this cubin for sm_90a"):
        backend.load_cubin(b"")


def test_blocks_outside_of_captures_nest(backend: CudaBackend, fake: FakeCuda) -> None:
    """Within one block the mode of the thread is exchanged once, and back; another thread has a mode of its own."""
    name = "cuThreadExchangeStreamCaptureMode"

    def enter() -> None:
        with backend.outside_captures():
            assert fake.calls[name] == 2

    with backend.outside_captures():
        with contextlib.suppress(ValueError), backend.outside_captures():
            raise ValueError
        assert fake.calls[name] == 1
        with ThreadPoolExecutor(1) as pool:
            pool.submit(enter).result()
        assert fake.calls[name] == 3
    assert fake.calls[name] == 4


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.backends.driver.LIBRARIES", ("libdoes-not-exist.so",))
    api.driver.cache_clear()
    reason = api.why_unavailable()
    assert reason is not None
    assert "--device cpu" in reason
    with pytest.raises(EnvironmentFailure) as caught:
        CudaBackend()
    assert caught.value.exit_code == ExitCode.USAGE
    api.driver.cache_clear()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_heard_while_a_kernel_hangs(backend: CudaBackend, fake: FakeCuda, module: CudaModule) -> None:
    """The driver's own wait would not let Python handle the signal: the events are asked first."""
    backend.launch(module, "k", (1, 1, 1), (32, 1, 1), ARGS)
    fake.busy = 10**9
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        backend.synchronize()
    timer.join()
    assert fake.depth == 0
    assert fake.calls["cuCtxSynchronize"] == 0
    fake.busy = 0
    assert backend.synchronize()
    assert fake.calls["cuCtxSynchronize"] == 1
