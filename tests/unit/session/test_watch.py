"""How launches ended, as the driver tells it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from consan.backends.base import DeviceLost
from consan.session.executing.watch import SessionWatch


def test_an_error_that_the_driver_gives_again_is_one_fault() -> None:
    """A broken context gives its error for each later call, which belongs to no kernel; another error is reported."""
    device: Any = SimpleNamespace(backend=None, lost=False)
    watch = SessionWatch(device, None, {})
    fault = DeviceLost("illegal instruction", code=715, name="CUDA_ERROR_ILLEGAL_INSTRUCTION")
    for entry in ("k", "a kernel", "other"):
        watch.device_lost(entry, fault)
    assert device.lost
    assert list(watch.reasons) == [
        "k ended with CUDA_ERROR_ILLEGAL_INSTRUCTION: the launches after it did not run, and counts are lower bounds"
    ]
    watch.device_lost("k", DeviceLost("trap", code=719, name="CUDA_ERROR_LAUNCH_FAILED"))
    assert len(watch.reasons) == 2
