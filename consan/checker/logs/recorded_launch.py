"""The part of a recorded launch that the checker reads: of one on a device (launch.py), out of a file, or remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.replay import History
from consan.checker.logs.grouping import Grouped
from consan.textures.description import TextureMemory

MemoryBefore = tuple[int, npt.NDArray[np.uint8]]
"""An address, and the bytes there."""


class RecordedLaunch(Protocol):
    """The part of a launch that `check` reads."""

    def grouped(self, limit: int) -> Grouped:
        """The clusters by history. `limit`: only as many as have so many CTAs (0: all)."""

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters, without the lines that nothing was written to."""

    def has(self, cluster: int) -> bool:
        """Whether the cluster's history can be read."""

    @property
    def memory_before(self) -> Sequence[MemoryBefore]:
        """The bytes in memory before the launch, by address, where they are known."""

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses; None: they are not known."""

    def free(self) -> None:
        """Free the memory."""
