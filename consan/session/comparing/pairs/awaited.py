"""The accesses of a launch that is checked beside the program: they come when the check is over.

The place of the launch in the order of streams is known when it is made, so all that it may run beside is known then. Nobody waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.checker.compiled.concurrent_launches import Retained


def _nothing() -> None:
    """The launch has no place yet."""


@dataclass(eq=False)
class AwaitedAccesses:
    """Those of one launch. `there`: they have come; `retained` is None if they are not known, also then.

    `compare`: compares what waits for them, in the thread that checks. `began`, `ended`: of the check, in seconds.
    """

    there: bool = False
    retained: Retained | None = None
    compare: Callable[[], None] = _nothing
    began: float | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Those that its check has taken so far."""
        return 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began

    def come(self, retained: Retained | None) -> None:
        """They are known, or will not be."""
        if not self.there:
            self.retained, self.there = retained, True
