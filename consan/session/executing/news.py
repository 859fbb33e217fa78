"""Tells when a launch has shown a finding that is unlike all before, so that it can be stored before the program ends.

Not handled: called hooks in modules that a framework loads and launches. Their findings are read when the session is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from consan.session.executing.recording import Recording
from consan.session.executing.watch import SessionWatch
from consan.session.modules.device import Device


@dataclass
class News:
    """What a session has found since it was last told."""

    device: Device
    recording: Recording
    watch: SessionWatch
    on_found: Callable[[], None] | None = None
    _in_ring: int = 0

    def tell(self, *, hooked: bool = False) -> None:
        """Call `on_found` if there is something new. `hooked`: look for records of called hooks, too."""
        if self.on_found is None:
            return
        new = self.recording.findings.new or self.watch.findings.new or (hooked and self._ring_has_more())
        self.recording.findings.new = self.watch.findings.new = False
        if new:
            self.on_found()

    def _ring_has_more(self) -> bool:
        before, self._in_ring = self._in_ring, self.device.shadow.found() if self.device.has_hooks else 0
        return self._in_ring > before
