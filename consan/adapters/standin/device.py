"""The devices of the stand-in, with the limits of an sm_90."""

from __future__ import annotations

from typing import Any

from consan.adapters.standin.context import current
from consan.session.comparing.program_streams import CurrentPlaces

SHARED_PER_BLOCK = 49152
SHARED_OPTIN = 232448  # 227 KiB, as on sm_90
MAX_THREADS = 1024
TOTAL_MEMORY = 16 << 30


class CUDARuntimeError(RuntimeError):
    """An error that the runtime would return."""


def places() -> CurrentPlaces:
    """The current device of this thread."""
    found: CurrentPlaces = current().session.streams.places
    return found


def sm_count() -> int:
    """Multiprocessors of the backend."""
    return int(getattr(current().session.backend, "sm_count", 1))


def compute_capability() -> str:
    """Digits of the backend's architecture, e.g. "90"."""
    return "".join(filter(str.isdigit, str(getattr(current().session.backend, "arch", "sm_90"))))


class Device:
    """`cupy.cuda.Device`."""

    def __init__(self, device: Any = None) -> None:
        self.id: int = device.id if isinstance(device, Device) else places().here if device is None else int(device)
        if not 0 <= self.id < places().devices:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._outside: list[int] = []

    def __enter__(self) -> Device:
        self._outside.append(places().use(self.id))
        return self

    def __exit__(self, *exc: object) -> None:
        places().use(self._outside.pop())

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        """Make it current."""
        places().use(self.id)

    def synchronize(self) -> None:
        """Let the host wait for all that was done on it."""
        with self:
            current().session.streams.synchronize()

    @property
    def compute_capability(self) -> str:
        """As CuPy writes it: "90"."""
        return compute_capability()

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes that launch code asks for."""
        return {
            "MultiProcessorCount": sm_count(),
            "WarpSize": 32,
            "MaxThreadsPerBlock": MAX_THREADS,
            "MaxSharedMemoryPerBlock": SHARED_PER_BLOCK,
            "MaxSharedMemoryPerBlockOptin": SHARED_OPTIN,
            "ComputeCapabilityMajor": int(compute_capability()[:-1]),
            "ComputeCapabilityMinor": int(compute_capability()[-1]),
            "CooperativeLaunch": 1,
        }

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return TOTAL_MEMORY, TOTAL_MEMORY
