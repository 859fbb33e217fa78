"""A process with two contexts, over a driver that is made up: which one is current, and whose memory an address is."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from test_cuda_fake_driver import FakeCuda

from consan.backends import driver as api
from consan.backends.contexts import HOST_MEMORY
from consan.backends.cuda import CudaBackend
from consan.backends.second_context import SecondContext, primary

PRIMARY = {0: 0x1000, 1: 0x2000}
MADE = 0x3000  # a context of device 1 that the program has made
KINDS = {0x10000: (0, 2), 0x20000: (1, 2), 0x30000: (0, 1)}  # by address: the ordinal and the type of its memory


class TwoDevices(FakeCuda):
    """A driver with two devices."""

    def __init__(self) -> None:
        super().__init__()
        self.current, self.count, self.active = PRIMARY[0], 2, True

    def do_cuDeviceGetCount(self, out: Any) -> None:
        out._obj.value = self.count

    def do_cuDeviceGet(self, out: Any, ordinal: int) -> None:
        out._obj.value = ordinal

    def do_cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> None:
        out._obj.value = PRIMARY[device]

    def do_cuDevicePrimaryCtxGetState(self, _device: int, _flags: Any, active: Any) -> None:
        active._obj.value = self.active

    def do_cuCtxGetCurrent(self, out: Any) -> None:
        out._obj.value = self.current

    def do_cuCtxGetDevice(self, out: Any) -> None:
        out._obj.value = 0 if self.current == PRIMARY[0] else 1

    def do_cuPointerGetAttribute(self, out: Any, attribute: int, address: ctypes.c_uint64) -> int:
        known = KINDS.get(address.value)
        if known is not None:
            out._obj.value = {9: known[0], 2: known[1], 8: 0}[attribute]
        return int(known is None)


@pytest.fixture
def fake() -> TwoDevices:
    return TwoDevices()


@pytest.fixture
def backend(fake: TwoDevices) -> CudaBackend:
    return CudaBackend(driver=api.Driver(fake))


@pytest.mark.parametrize(("name", "value", "own"), [("LOCAL_RANK", "1", 1), ("SLURM_LOCALID", "1", 1), ("LOCAL_RANK", "2", 0), ("", "", 0)])
def test_the_gpu_of_one_of_several_processes(fake: TwoDevices, monkeypatch: pytest.MonkeyPatch, name: str, value: str, own: int) -> None:
    monkeypatch.setattr(api, "driver", lambda: api.Driver(fake))
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if name:
        monkeypatch.setenv(name, value)
    found = primary()
    assert (found.contexts.device, found.contexts.own, found.contexts.several) == (own, PRIMARY[own], False)


@pytest.mark.parametrize(("current", "other"), [(PRIMARY[0], 0), (None, 0), (PRIMARY[1], PRIMARY[1]), (MADE, MADE)])
def test_the_other_context(backend: CudaBackend, fake: TwoDevices, current: int | None, other: int) -> None:
    fake.current = current  # type: ignore[assignment]
    assert (backend.contexts.other(), backend.contexts.several) == (other, bool(other))


@pytest.mark.parametrize(("address", "holder"), [(0x10000, ""), (0x20000, "GPU 1"), (0x30000, ""), (0x40000, ""), (12, "")])
def test_whose_memory_an_address_is(backend: CudaBackend, address: int, holder: str) -> None:
    assert backend.contexts.holder(address) == holder


def test_memory_of_the_host_is_shared_once_there_are_two_contexts(backend: CudaBackend) -> None:
    backend.contexts.several = True
    assert [backend.contexts.holder(address) for address in KINDS] == ["", "GPU 1", HOST_MEMORY]


@pytest.mark.parametrize("count", [1, 2])
def test_a_process_with_one_gpu_is_alone(backend: CudaBackend, fake: TwoDevices, count: int) -> None:
    fake.count = count
    assert backend.contexts.alone == (count == 1)


def test_the_context_of_the_second_device_is_retained(fake: TwoDevices) -> None:
    fake.current = PRIMARY[1]
    second = SecondContext(PRIMARY[1], driver=api.Driver(fake))
    assert (second.contexts.refusal, second.contexts.several, second.contexts.other()) == ("", True, 0)
    assert second.contexts.holder(0x10000) == "GPU 0"
    second.close()
    assert fake.calls["cuDevicePrimaryCtxRetain"] == fake.calls["cuDevicePrimaryCtxRelease_v2"] == 1


@pytest.mark.parametrize("active", [False, True])
def test_a_context_that_the_program_has_made_is_left_to_it(fake: TwoDevices, active: bool) -> None:
    fake.current, fake.active = MADE, active
    second = SecondContext(MADE, driver=api.Driver(fake))
    second.close()
    assert "cuCtxCreate" in second.contexts.refusal
    assert fake.calls["cuDevicePrimaryCtxRetain"] == fake.calls["cuDevicePrimaryCtxRelease_v2"] == int(active)
