"""The driver in `triton.runtime.driver.active` while kernels run on the virtual machine.

It has the interface of Triton's CUDA driver (`backends/driver.py`, `backends/nvidia/driver.py`): target, device, stream, launcher, `utils`.
Triton therefore compiles as for a real chip, with pipelining, cp.async, wgmma and TMA. The
device's number differs from any real one: Triton caches compiled kernels by that number, and kernels for the virtual machine and for a
GPU must not be mixed.

Times are NaN: times of a virtual machine mean nothing. Not handled: profilers, and Triton's ahead-of-time compiler.
"""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
from types import SimpleNamespace
from typing import Any

from consan._errors import NotSupported
from consan.adapters.distributed.torch_streams import CurrentStream
from consan.adapters.triton.launcher import Code, Launcher

# Shared memory of a CTA, "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
ARCHITECTURES = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10}
_FIRST_NUMBER = 1 << 10  # of a device: beyond any real GPU's
_REGISTERS = 1 << 16
_MOST_THREADS = 1024
_USED = re.compile(rb"REG:(\d+).*?LOCAL:(\d+)")


class VirtualDriver:
    """The virtual machine as Triton's device."""

    def __init__(self, session: Any, arch: str = "sm_90") -> None:
        if arch not in ARCHITECTURES:
            raise NotSupported(f"Triton kernels for '{arch}' do not run on the virtual machine; expected {', '.join(ARCHITECTURES)}")
        self.session = session
        self.now = CurrentStream(session)
        self.arch = arch
        self.capability = int(arch.removeprefix("sm_"))
        self.launcher_cls = functools.partial(Launcher, self)
        self.utils = Utils(self)

    @classmethod
    def is_active(cls) -> bool:
        """Always active."""
        return True

    def get_current_target(self) -> Any:
        """The target to compile for."""
        return importlib.import_module("triton.backends.compiler").GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        """The device's number; Triton keeps compiled kernels by it."""
        return _FIRST_NUMBER + self.capability

    def set_current_device(self, device: Any) -> None:
        """There is only one."""

    def get_current_stream(self, device: Any = None) -> int:
        """The handle of the current stream of this thread."""
        return self.now.get().handle

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """As torch reports it."""
        return divmod(self.capability, 10)

    def get_active_torch_device(self) -> Any:
        """The torch device on which a program puts its tensors."""
        return importlib.import_module("torch").device("cpu")

    def get_device_interface(self) -> Any:
        """The part of `torch.cuda` that Triton's own helpers use."""
        events = self.now.classes()["Event"]
        return SimpleNamespace(synchronize=self.session.streams.synchronize, Event=events, current_device=self.get_current_device)

    def get_benchmarker(self) -> Any:
        """One call, and times that are not numbers."""
        return importlib.import_module("triton.testing").do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """No cache has to be flushed."""
        return SimpleNamespace(zero_=_nothing)

    def clear_cache(self, cache: Any) -> None:
        """No cache has to be flushed."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Not available: it serves Triton's ahead-of-time tools, which need a GPU's driver."""
        raise NotSupported("Triton's ahead-of-time compiler writes launchers in C, which do not run on the virtual machine")


class Utils:
    """`driver.utils`."""

    def __init__(self, driver: VirtualDriver) -> None:
        self._driver = driver

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """Limits of the architecture; multiprocessors are those of the virtual machine, which has no clocks."""
        limits = {"max_shared_mem": ARCHITECTURES[self._driver.arch], "max_num_regs": _REGISTERS, "warpSize": 32}
        clocks = dict.fromkeys(("sm_clock_rate", "mem_clock_rate", "mem_bus_width"), 0)
        return {**limits, **clocks, "multiprocessor_count": int(self._driver.session.backend.sm_count)}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, Code, int, int, int]:
        """`kernel` is PTX (see `virtual`); nothing is loaded before a launch."""
        code = Code(name, kernel.decode())
        return code, code, 0, 0, _MOST_THREADS

    def unload_module(self, module: Any) -> None:
        """Nothing to do: the session keeps modules."""

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing to do: printed text is not buffered."""


def resources(cubin: str) -> tuple[int, int]:
    """Registers and spilled words of a cubin's kernel, from Triton's own tool; zeros without it."""
    knobs = importlib.import_module("triton.knobs")
    try:
        done = subprocess.run([knobs.nvidia.cuobjdump.path, "-res-usage", cubin], capture_output=True, check=False)
    except (OSError, RuntimeError):  # a Triton without its tools
        return 0, 0
    found = _USED.search(done.stdout + done.stderr)
    return (int(found[1]), int(found[2]) // 4) if found else (0, 0)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """A driver call that has no meaning here."""
