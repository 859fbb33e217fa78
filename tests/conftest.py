"""For all tests: each file has a virtual machine of its own, so that what it leaves in memory costs the others nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consan import session as sessions


@pytest.fixture(autouse=True, scope="module")
def _own_machine() -> Iterator[None]:
    """A GPU's shadow memory stays: it is one allocation, and is used again."""
    yield
    for name in [name for name, device in sessions._DEVICES.items() if device.backend.device_name == "cpu"]:
        del sessions._DEVICES[name]
