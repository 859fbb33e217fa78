"""The GPU is opened beside the imports of a session (consan.toolchain.gpu_context.py)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from consan.toolchain import gpu_context


class SlowDriver:
    """A driver that is initialised when the test says so. `fails`: the function that does not work."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self.may_begin = threading.Event()
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        def function(*_: object) -> int:
            assert name != "cuInit" or self.may_begin.wait(60)
            self.calls.append(name)
            return int(name == self._fails)

        return function


def test_the_context_is_made_beside_the_block_and_kept_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, threads = SlowDriver(), threading.active_count()
    monkeypatch.setattr(gpu_context, "library", lambda: driver)
    with gpu_context.opened_in_background("gpu") as wait:
        assert driver.calls == []  # the block goes on meanwhile
        driver.may_begin.set()
        wait()
        assert driver.calls == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]
    assert driver.calls[3:] == ["cuDevicePrimaryCtxRelease_v2"]
    assert threading.active_count() == threads


@pytest.mark.parametrize("fails", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"])
def test_a_failure_is_left_to_the_one_who_uses_the_device(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    driver = SlowDriver(fails)
    monkeypatch.setattr(gpu_context, "library", lambda: driver)
    with gpu_context.opened_in_background("auto"):
        driver.may_begin.set()
    assert driver.calls[-1] == fails


@pytest.mark.parametrize(("device", "unless"), [("cpu", False), ("gpu", True)])
def test_nothing_is_opened_where_there_is_no_use(monkeypatch: pytest.MonkeyPatch, device: str, unless: bool) -> None:
    monkeypatch.setattr(gpu_context, "library", lambda: pytest.fail("a driver is loaded"))
    with gpu_context.opened_in_background(device, unless=unless) as wait:
        wait()


def test_without_a_driver_the_block_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_context, "LIBRARIES", ("libdoes-not-exist.so",))
    with gpu_context.opened_in_background("gpu") as wait:
        wait()
    assert gpu_context.library() is None
