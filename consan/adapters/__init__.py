"""Adapters: how kernels of each framework reach a session.

`install(session)` arms every adapter that fits the session's device, `remove()` disarms them. Sessions nest (`consan.check()` inside
`consan run`): the innermost one gets the kernels; the outer one continues when it ends.

Not handled: two sessions at the same time in different threads; a process has one list of adapters.
"""

from __future__ import annotations

from typing import Final

from consan import late
from consan.adapters.base import Adapter, SessionLike

DEVICES: Final = ("gpu", "cpu")
_sessions: list[SessionLike] = []


def adapters(device: str) -> tuple[Adapter, ...]:
    """Those of a device. A new framework is one file and one entry there."""
    return late.gpu_adapters.ADAPTERS if device == "gpu" else late.cpu_adapters.ADAPTERS


def _fitting(session: SessionLike) -> tuple[Adapter, ...]:
    return adapters(session.backend.choice)


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
    return {f"{adapter.name} ({device})": adapter.describe() for device in DEVICES for adapter in adapters(device)}
