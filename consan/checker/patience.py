"""A limit on the time that the replays of one launch take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

_EARLY = 1.0  # seconds after which the rest is estimated


@dataclass
class Patience:
    """A limit on the time that replays take."""

    seconds: float
    _began: float = field(default_factory=time.monotonic)

    def over(self, done: int, total: int) -> bool:
        """Whether the time is over, or will be before `total` things are done of which `done` are."""
        taken = time.monotonic() - self._began
        return taken > self.seconds or (taken > _EARLY and done > 0 and taken * total > self.seconds * done)
