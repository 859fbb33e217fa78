"""`cupy.cuda` of the stand-in: devices, their streams (streams.py) and memory, which all of them can reach.

Not handled: stream capture and graphs, IPC, textures: `NotInStandin`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from consan._errors import UsageError
from consan.adapters.standin.array import NotInStandin, allocate
from consan.adapters.standin.context import MemoryPointer, bytes_at, current
from consan.adapters.standin.device import (
    MAX_THREADS,
    SHARED_OPTIN,
    SHARED_PER_BLOCK,
    TOTAL_MEMORY,
    CUDARuntimeError,
    Device,
    compute_capability,
    places,
    sm_count,
)
from consan.adapters.standin.streams import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time


class CompileException(UsageError):  # noqa: N818 - CuPy's name
    """The source of a kernel does not compile. A program may catch it, as CuPy's; else consan shows the message."""

    def __init__(self, msg: str, source: str, name: str, options: tuple[str, ...], backend: str = "nvrtc") -> None:
        super().__init__(msg)
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, options, backend

    def get_message(self) -> str:
        """The compiler's messages."""
        return self._msg

    def dump(self, f: Any) -> None:
        """Write the source with line numbers, and the messages, to a file."""
        lines = self.source.splitlines()
        f.write("".join(f"{number:4} {line}\n" for number, line in enumerate(lines, 1)) + f"{self._msg}\n")


class CUDADriverError(RuntimeError):
    """An error that the driver would return."""


class PinnedMemory(bytearray):
    """`cupy.cuda.alloc_pinned_memory`: a host buffer for `numpy.frombuffer`."""

    @property
    def mem(self) -> PinnedMemory:
        """The buffer itself."""
        return self


class MemoryPool:
    """`cupy.cuda.MemoryPool`: the stand-in frees at once, so that there is nothing to report."""

    def __init__(self, allocator: Any = None) -> None: ...

    def malloc(self, size: int) -> MemoryPointer:
        """Allocate."""
        return allocate(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Nothing is pooled; the session forgets what the pool would give again."""
        current().session.streams.memory.empty()

    def used_bytes(self) -> int:
        """Bytes in the pool."""
        return 0

    free_bytes = total_bytes = n_free_blocks = get_limit = used_bytes

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """No limit is kept."""


class _Runtime(ModuleType):
    """`cupy.cuda.runtime`."""

    CUDARuntimeError = CUDARuntimeError
    is_hip = False
    memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)  # noqa: N815

    def __getattr__(self, name: str) -> NoReturn:
        raise NotInStandin(f"cupy.cuda.runtime.{name}")

    def getDeviceCount(self) -> int:  # noqa: N802
        """The option `--gpus`."""
        return places().devices

    def getDevice(self) -> int:  # noqa: N802
        """The current one."""
        return places().here

    def setDevice(self, device: int) -> None:  # noqa: N802
        """Make a device the current one."""
        Device(device).use()

    def deviceCanAccessPeer(self, device: int, peer: int) -> int:  # noqa: N802
        """Each other one."""
        return int(Device(device) != Device(peer))

    def deviceEnablePeerAccess(self, device: int) -> None:  # noqa: N802
        """Nothing: it is not looked at."""
        Device(device)

    deviceDisablePeerAccess = deviceEnablePeerAccess  # noqa: N815

    def deviceSynchronize(self) -> None:  # noqa: N802
        """Let the host wait for the current device."""
        Device().synchronize()

    def streamSynchronize(self, stream: int) -> None:  # noqa: N802
        """Let the host wait for a stream."""
        ExternalStream(stream).synchronize()

    def runtimeGetVersion(self) -> int:  # noqa: N802
        """The CUDA version that the stand-in follows."""
        return 13000

    driverGetVersion = runtimeGetVersion  # noqa: N815

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        """Free and total bytes."""
        return TOTAL_MEMORY, TOTAL_MEMORY

    def memset(self, ptr: int, value: int, size: int) -> None:
        """Fill device memory, in the default stream."""
        self.memsetAsync(ptr, value, size, 0)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:  # noqa: N802
        """Fill device memory."""
        filled = current().machine.view(int(ptr), "u1", size)
        filled[...] = value
        order = ExternalStream(stream).order
        current().session.streams.operated("memset", order, writes=[(int(ptr), filled)])

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        """Copy between host and device addresses, in the default stream, and wait; `kind` says which is which."""
        self.memcpyAsync(dst, src, size, kind, 0)
        self.streamSynchronize(0)

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
        """Copy in a stream."""
        machine = current().machine
        to_device = kind in (self.memcpyHostToDevice, self.memcpyDeviceToDevice)
        from_device = kind in (self.memcpyDeviceToHost, self.memcpyDeviceToDevice)
        target = machine.view(int(dst), "u1", size) if to_device else bytes_at(int(dst), size)
        source = machine.view(int(src), "u1", size) if from_device else bytes_at(int(src), size)
        target[...] = source
        reads, writes = [(int(src), source)] * from_device, [(int(dst), target)] * to_device
        current().session.streams.operated("a copy of memory", ExternalStream(stream).order, reads, writes)

    def memcpyPeer(self, dst: int, dst_device: int, src: int, src_device: int, size: int) -> None:  # noqa: N802
        """Copy between two devices: behind all that was done there, and before all that follows."""
        streams, order = current().session.streams, ExternalStream(0).order
        others = [each for device in {dst_device, src_device, places().here} for each in streams.on(device)]
        for each in others:
            order.wait(each)
        self.memcpyAsync(dst, src, size, self.memcpyDeviceToDevice, 0)
        for each in others:
            each.wait(order)

    def memcpyPeerAsync(self, dst: int, dst_device: int, src: int, src_device: int, size: int, stream: int) -> None:  # noqa: N802
        """Copy between two devices in a stream."""
        self.memcpyAsync(dst, src, size, self.memcpyDeviceToDevice, stream)

    def getDeviceProperties(self, device: int) -> dict[str, Any]:  # noqa: N802
        """The properties that launch code asks for."""
        return {
            "name": b"consan PTX virtual machine",
            "major": int(compute_capability()[:-1]),
            "minor": int(compute_capability()[-1]),
            "multiProcessorCount": sm_count(),
            "warpSize": 32,
            "maxThreadsPerBlock": MAX_THREADS,
            "sharedMemPerBlock": SHARED_PER_BLOCK,
            "sharedMemPerBlockOptin": SHARED_OPTIN,
            "sharedMemPerMultiprocessor": SHARED_OPTIN + 1024,
            "totalGlobalMem": TOTAL_MEMORY,
        }


class _Cuda(ModuleType):
    """`cupy.cuda`."""

    __path__: list[str] = []  # noqa: RUF012 - import looks for it on the module
    Device, Stream, ExternalStream, Event, MemoryPool, MemoryPointer = Device, Stream, ExternalStream, Event, MemoryPool, MemoryPointer
    PinnedMemoryPool = MemoryPool
    get_elapsed_time, get_current_stream = staticmethod(get_elapsed_time), staticmethod(get_current_stream)
    alloc = staticmethod(allocate)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotInStandin(f"cupy.cuda.{name}")

    def is_available(self) -> bool:
        """The virtual machine is always there."""
        return True

    def alloc_pinned_memory(self, size: int) -> PinnedMemory:
        """Host memory."""
        return PinnedMemory(size)

    def set_allocator(self, allocator: Any = None) -> None:
        """The stand-in allocates by itself; without an allocator no pool gives memory again."""
        current().session.streams.memory.pools = allocator is not None

    def set_pinned_memory_allocator(self, allocator: Any = None) -> None:
        """Accepted: memory of the host has no pool here."""


def build() -> dict[str, ModuleType]:
    """The modules `cupy.cuda` and below."""
    cuda, runtime = _Cuda("cupy.cuda"), _Runtime("cupy.cuda.runtime")
    modules = {"cupy.cuda": cuda, "cupy.cuda.runtime": runtime}
    for name, members in _SUBMODULES.items():
        modules[f"cupy.cuda.{name}"] = module = ModuleType(f"cupy.cuda.{name}")
        module.__dict__.update(members)
    for name, module in modules.items():
        if name != "cupy.cuda":
            setattr(cuda, name.rpartition(".")[2], module)
    return modules


_SUBMODULES: dict[str, dict[str, Any]] = {
    "stream": {
        "Stream": Stream,
        "ExternalStream": ExternalStream,
        "Event": Event,
        "get_current_stream": get_current_stream,
        "get_elapsed_time": get_elapsed_time,
    },
    "compiler": {"CompileException": CompileException},
    "device": {"Device": Device},
    "driver": {"CUDADriverError": CUDADriverError},
    "memory": {"MemoryPointer": MemoryPointer, "MemoryPool": MemoryPool, "alloc": allocate},
}
