"""Stops kernels that run for longer than the time limit, while the program goes on: a thread that looks at the clock.

A kernel's time begins when its stream comes to it. One that does not leave in time is left to the device, and its log is read while it
hangs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

from consan.backends.base import DeviceLost
from consan.dataclass import dataclass
from consan.session.executing import endings
from consan.session.executing.in_flight_launch import InFlightLaunch, StreamKey
from consan.session.executing.watch import SessionWatch
from consan.session.modules.device import Device

LOOK_EVERY: Final = 0.25  # seconds between two looks


@dataclass
class TimeLimit:
    """The thread of one session. `out`: the launches without a receipt, in their order; `left`: one does not leave."""

    device: Device
    watch: SessionWatch
    out: Callable[[], Sequence[InFlightLaunch]]
    left: Callable[[InFlightLaunch], None]
    lock: threading.RLock  # of the launches in flight
    waited: float = 0.0  # seconds in which the host has waited for checks
    _thread: threading.Thread | None = None
    _busy: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """A launch was made."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="consan-launches")
            self._thread.start()
        if not self._busy.is_set():
            self._busy.set()

    def _run(self) -> None:
        with contextlib.suppress(DeviceLost), self.device.backend.outside_captures():
            while not self.device.lost:
                self._busy.wait()
                time.sleep(LOOK_EVERY)
                with contextlib.suppress(Exception):  # whoever waits for a launch asks the same, and reports the error
                    self._look()

    def _look(self) -> None:
        self._busy.clear()
        first: dict[StreamKey, InFlightLaunch] = {}
        for sent in self.out():
            self._busy.set()
            if sent.is_out:
                first.setdefault(sent.stream, sent)
        for sent in first.values():
            self._look_at(sent)

    def _look_at(self, sent: InFlightLaunch) -> None:
        limit, slip, now = self.watch.limit_of(sent.started), sent.slip, time.monotonic()
        if slip is None or limit is None:
            return
        if sent.running_since is None:
            work = self.device.backend.work
            assert work is not None
            with work.entered():
                sent.running_since = now if work.passed(slip.begun) else None
        elif sent.stopped_at is None and now > sent.running_since + limit:
            sent.stopped_at = now
            self._stop(sent, endings.over_time(limit))
        elif sent.stopped_at is not None and now > sent.stopped_at + self.watch.patience_of(limit):
            self.watch.reasons[f"{sent.entry} did not react to the request to stop; the device was left to it"] = None
            sent.memory.hangs = sent.hangs = self.device.lost = True
            self.left(sent)

    def _stop(self, sent: InFlightLaunch, why: str) -> None:
        """Make the threads of a launch leave. If it ends just now, the next one that has the same variables finds the request."""
        with self.lock:
            symbol = sent.memory.symbol_addresses[0]
            for each in self.out():
                if each.memory.symbol_addresses[0] == symbol:
                    each.started.ending.stopped, each.memory.stopped = why, True
            sent.memory.stop()
