"""Adapters: how kernels of each framework reach a session.

`install(session)` arms every adapter that fits the session's device, `remove()` disarms them. Sessions nest (`consan.check()` inside
`consan run`): the innermost one gets the kernels; the outer one continues when it ends.

Not handled: two sessions at the same time in different threads; a process has one list of adapters.
"""

from __future__ import annotations

from consan.adapters.base import Adapter, SessionLike
from consan.adapters.cuda_core import CudaCoreAdapter
from consan.adapters.cupy import CupyAdapter
from consan.adapters.distributed import DistributedStandIn
from consan.adapters.driven.cute import CuteStandIn
from consan.adapters.driven.driver import DriverStandIn
from consan.adapters.driven.jax import JaxStandIn
from consan.adapters.driven.numba import NumbaMlirStandIn, NumbaStandIn
from consan.adapters.driven.tilelang import TilelangStandIn
from consan.adapters.driven.warp import WarpStandIn
from consan.adapters.numba import NumbaAdapter
from consan.adapters.processes import TorchProcesses
from consan.adapters.standin import CupyStandIn
from consan.adapters.torch_kernels import TorchKernelAdapter, TorchKernelRefused
from consan.adapters.triton.gpu import TritonAdapter
from consan.adapters.triton.helion import HelionUntuned
from consan.adapters.triton.virtual import TritonVirtual
from consan.adapters.without_ptx import CuTileAdapter, JaxUnseen

# A new framework is one file and one entry here.
ADAPTERS: dict[str, tuple[Adapter, ...]] = {
    "gpu": (
        CupyAdapter(),
        TritonAdapter(),
        NumbaAdapter(),
        CudaCoreAdapter(),
        TorchKernelAdapter(),
        TorchProcesses(),
        CuTileAdapter(),
        JaxUnseen(),
    ),
    "cpu": (
        *(CupyStandIn(), TritonVirtual(), DriverStandIn(), NumbaStandIn(), NumbaMlirStandIn(), CuteStandIn(), WarpStandIn()),
        *(TilelangStandIn(), HelionUntuned(), JaxStandIn(), DistributedStandIn(), TorchKernelRefused(), CuTileAdapter()),
    ),
}

_sessions: list[SessionLike] = []


def _fitting(session: SessionLike) -> tuple[Adapter, ...]:
    return ADAPTERS[session.backend.choice]


def install(session: SessionLike) -> None:
    """Send every kernel that the frameworks compile from now on to this session."""
    if _sessions and _sessions[-1] is session:
        return
    _disarm()
    session.alone = False  # a program may write from the host, or launch on other streams, while a kernel runs
    _sessions.append(session)
    try:
        if session.backend.calls is not None:
            assert session.followed is not None  # a program may make streams before it has a kernel
        _arm()
    except BaseException:
        remove()
        raise


def remove() -> None:
    """Undo the latest `install`. Does nothing if there was none."""
    _disarm()
    if _sessions:
        _sessions.pop()
    _arm()


def _arm() -> None:
    if _sessions:
        for adapter in _fitting(_sessions[-1]):
            adapter.install(_sessions[-1])


def _disarm() -> None:
    if _sessions:
        for adapter in _fitting(_sessions[-1]):
            adapter.remove()


def describe() -> dict[str, str]:
    """One line per adapter, for `consan doctor`."""
    return {f"{adapter.name} ({device})": adapter.describe() for device, group in ADAPTERS.items() for adapter in group}
