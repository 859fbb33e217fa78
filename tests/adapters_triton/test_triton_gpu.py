"""The adapter for Triton on a GPU: with Triton itself, and a driver that takes note of what it is asked to load and launch.

Real kernels on a real GPU are in tests/gpu/test_triton_adapter.py.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from consan import adapters
from consan.adapters import on_gpu
from consan.adapters.triton.code import ptx_of
from consan.adapters.triton.gpu import CheckedDevice, TritonAdapter
from consan.adapters.triton.host import HostArray
from consan.backends.cuda import CudaModule
from consan.backends.virtual import VirtualBackend
from consan.instrument import CONTROL
from consan.instrument.runtime import Variant
from consan.session.modules import device as devices
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

triton = pytest.importorskip("triton", reason="Triton is not installed")
import triton_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


class FakeGpu(VirtualBackend):
    """A GPU that has memory and symbols and runs nothing."""

    device_name, choice = "Fake GPU", "gpu"
    simulates = seeded = survives_fork = False
    assembles = True
    modules_kept = None
    arch = "sm_90a"
    allocates_zeros = True
    records = False  # called hooks, for tests that say nothing else

    def __init__(self) -> None:
        super().__init__()
        self.symbols: dict[tuple[int, str], int] = {}

    def symbol(self, handle: Any, name: str) -> tuple[int, int]:
        assert isinstance(handle, CudaModule)
        key = (handle.handle, name)
        self.symbols.setdefault(key, self.alloc(64))
        return self.symbols[key], 64


class FakeDriver:
    """Triton's driver for CUDA, as far as a launch needs it."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, bytes]] = []
        self.launches: list[tuple[Any, ...]] = []
        self.utils = SimpleNamespace(
            load_binary=self.load_binary, unload_module=lambda module: None, get_device_properties=lambda device: {"max_shared_mem": 232448}
        )

    def get_current_target(self) -> Any:
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        self.loaded.append((name, kernel))
        return 1000 + len(self.loaded), 2000 + len(self.loaded), 32, 0, 1024

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        def launch(x: int, y: int, z: int, stream: int, function: Any, packed: Any, given: Any, enter: Any, leave: Any, *args: Any) -> None:
            if enter is not None:
                enter(given)
            self.launches.append((x, y, z, function))
            if leave is not None:
                leave(given)

        return launch


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(triton.runtime.driver, "_active", fake)
    for kernel in (kernels.add, kernels.running_sum):
        monkeypatch.setattr(kernel, "device_caches", type(kernel.device_caches)(kernel.create_binder))
    return fake


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    fake = FakeGpu()
    monkeypatch.setattr(devices, "open_backend", lambda device: fake)
    monkeypatch.setattr(devices, "DEVICES", {})
    monkeypatch.setattr(SessionOptions, "records", property(lambda self: fake.records))
    monkeypatch.setattr(on_gpu, "ADAPTERS", (TritonAdapter(),))
    return fake


class OnGpu(HostArray):
    """An array that claims to be on a GPU."""

    device = SimpleNamespace(type="cuda")


X = OnGpu(np.zeros(256, np.float32))


def launch() -> Any:
    return kernels.add[(2,)](X, X, X, 256, BLOCK=256)


def test_an_instrumented_cubin_is_loaded_and_triton_keeps_its_own(driver: FakeDriver, backend: FakeGpu) -> None:
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    try:
        kernel = launch()
        launch()
    finally:
        adapters.remove()
    (name, cubin), prepared = driver.loaded[0], next(iter(session.modules.used.values()))
    assert (name, len(driver.loaded), len(driver.launches)) == ("add", 1, 2)
    assert cubin == prepared.code.cubin
    assert cubin[:4] == b"\x7fELF"
    assert CONTROL.encode() in cubin
    assert CONTROL.encode() not in kernel.asm["cubin"]
    assert kernel.kernel == kernel.asm["cubin"]
    assert prepared.plain == ptx_of(kernel)
    address = backend.symbols[1001, CONTROL]
    expected = session.shadow.control_block(prepared.number, prepared.counter)
    assert backend.read(address, len(expected)) == expected


def test_launches_name_global_memory_by_their_arguments(driver: FakeDriver, backend: FakeGpu) -> None:
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    try:
        launch()
        prepared = next(iter(session.modules.used.values()))
        compiled = next(kernel for _, reference in _adapter()._attached if (kernel := reference()) is not None)
        buffer = SimpleNamespace(data_ptr=lambda: 4096, numel=lambda: 16, element_size=lambda: 4, is_contiguous=lambda: True)
        compiled.launch_metadata((1, 1, 1), 0, HostArray(np.zeros(4, np.float32)), HostArray(np.zeros(4, np.float32)), buffer, 4, 256)
    finally:
        adapters.remove()
    names = [*session.names._of[prepared.number, "add"]]
    assert [name(4096, 4100) for name in names] == ["", "element 0 of argument 3 (out_ptr)"]


def _adapter() -> TritonAdapter:
    return next(adapter for adapter in adapters.adapters("gpu") if isinstance(adapter, TritonAdapter))


def test_a_gluon_kernel_has_sites(driver: FakeDriver, backend: FakeGpu) -> None:
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    kernels.running_sum[(1,)](X, X, 4, BLOCK=128, STAGES=3, PENDING=1)
    adapters.remove()
    summary = session.report().kernels[0]
    assert (summary.name, summary.memory_sites > 0, summary.sync_sites > 0) == ("running_sum", True, True)


def test_kernels_of_a_session_and_others_are_not_confused(driver: FakeDriver, backend: FakeGpu) -> None:
    plain = launch()
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    checked = launch()
    plain[(1, 1, 1)](X, X, X, 256, 256)
    adapters.remove()
    again = launch()
    assert plain is again
    assert plain is not checked
    assert [CONTROL.encode() in cubin for _, cubin in driver.loaded] == [False, True]
    assert [(u.name, u.launches) for u in session.report().uninstrumented] == [("add", 1)]


def test_a_later_session_attaches_again(driver: FakeDriver, backend: FakeGpu) -> None:
    def launch() -> Any:
        return kernels.running_sum[(1,)](X, X, 4, BLOCK=128, STAGES=3, PENDING=1)

    first, second = Session(SessionOptions(device="gpu")), Session(SessionOptions(device="gpu"))
    for session in (first, second):
        adapters.install(session)
        launch()
        adapters.remove()
        assert list(session.modules.used.values())
        assert not session.report().uninstrumented
    assert len(driver.loaded) == 1
    # Its hooks are others: the loaded kernel is not checked.
    other = Session(SessionOptions(device="gpu"), variant=Variant(epoch_bits=(6, 6)))
    adapters.install(other)
    launch()
    adapters.remove()
    report = other.report()
    assert [(u.name, u.launches) for u in report.uninstrumented] == [("running_sum", 1)]
    assert any("running_sum was loaded under other settings" in note for note in report.notes)


def test_sessions_of_another_policy_load_for_themselves(driver: FakeDriver, backend: FakeGpu) -> None:
    for policy in ("default", "isa"):
        adapters.install(Session(SessionOptions(device="gpu", policy=policy)))
        launch()
        adapters.remove()
    assert len(driver.loaded) == 2


def test_a_kernel_that_is_gone_is_forgotten(driver: FakeDriver, backend: FakeGpu) -> None:
    adapter = TritonAdapter()
    adapter.install(Session(SessionOptions(device="gpu")))
    launch()
    assert len(adapter._attached) == 1
    kernels.add.device_caches.clear()
    gc.collect()
    adapter.install(Session(SessionOptions(device="gpu")))
    assert not adapter._attached
    adapter.remove()


def test_a_tuned_kernel_runs_one_configuration_and_says_so(driver: FakeDriver, backend: FakeGpu) -> None:
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    x, out = HostArray(np.ones(300, np.float32)), HostArray(np.zeros(300, np.float32))
    kernels.tuned[(2,)](x, out, 300)
    adapters.remove()
    assert len(driver.launches) == 1
    assert len(kernels.tuned.configs) == 2
    assert any("one of 2 configurations (BLOCK: 256" in note for note in session.report().notes)


def test_everything_is_put_back(driver: FakeDriver, backend: FakeGpu) -> None:
    hooks = triton.knobs.runtime.launch_enter_hook
    before = triton.runtime.driver._active, triton.compiler.CompiledKernel._init_handles, list(hooks.calls)
    adapters.install(Session(SessionOptions(device="gpu")))
    assert triton.runtime.driver.active.get_current_device() == CheckedDevice(0, "default")
    assert triton.runtime.driver.active.utils is driver.utils
    adapters.remove()
    assert before == (triton.runtime.driver._active, triton.compiler.CompiledKernel._init_handles, list(hooks.calls))


def test_the_number_of_a_checked_device() -> None:
    device = CheckedDevice(1, "default")
    assert {device: "checked", 1: "plain"} == {CheckedDevice(1, "default"): "checked", 1: "plain"}
    assert device != CheckedDevice(1, "isa")
    assert [10, 11][device] == 11


def test_inductor_loads_through_triton(driver: FakeDriver, backend: FakeGpu) -> None:
    config = pytest.importorskip("torch._inductor.config", reason="torch is not installed")
    before = config.use_static_cuda_launcher
    with config.patch(use_static_cuda_launcher=True):
        adapters.install(Session(SessionOptions(device="gpu")))
        assert config.use_static_cuda_launcher is False
        adapters.remove()
        assert config.use_static_cuda_launcher is True
    assert config.use_static_cuda_launcher is before


def test_launches_are_recorded_where_the_session_records(driver: FakeDriver, backend: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel records nothing, so nothing has to run for its launches to be judged."""
    monkeypatch.setattr(backend, "records", True)
    session = Session(SessionOptions(device="gpu"))
    adapters.install(session)
    try:
        launch()
        launch()
        report = session.report()
    finally:
        adapters.remove()
    (summary,) = report.kernels
    assert (summary.engine, summary.launches, summary.ctas, len(driver.launches)) == ("record", 2, 4, 2)
    assert ("global-memory" in report.checked, summary.global_proven) == (True, 2 * 3 * 128), report.not_checked
    assert CONTROL.encode() not in driver.loaded[0][1]
    launch()  # without a session, by the launcher that is in place
    assert len(driver.launches) == 3
