"""For all tests: each file has a virtual machine of its own, so that what it leaves in memory costs the others nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from consan import session as sessions


@pytest.fixture(autouse=True, scope="module")
def _own_machine() -> Iterator[None]:
    """A GPU's shadow memory stays: it is one allocation, and is used again."""
    yield
    for name in [name for name, device in sessions._DEVICES.items() if device.backend.device_name == "cpu"]:
        del sessions._DEVICES[name]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C works, here and in processes that the test starts: `nohup` and background jobs of a shell ignore it, and that is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
