"""Lanes at a collective that wait for the rest of their warp or warpgroup, and what happens when nobody else can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.groups import LaneGroup, ReadyQueue
from consan.backends.cpu.state.wave import Wave

if TYPE_CHECKING:
    from .code import BoundBlock, Collective


class ParkedGroups(dict[tuple[int, int], LaneGroup]):
    """The groups of one wave, by stack and position."""

    def __init__(self, wave: Wave, ready: ReadyQueue) -> None:
        super().__init__()
        self.wave, self.ready = wave, ready
        self.parted = False  # whether a warp goes on without the rest of its warpgroup
        self.alone: set[tuple[int, int]] = set()  # positions and warps: there, lanes go on without others that the mask names

    def release(self, which: Callable[[Collective], bool]) -> list[LaneGroup]:
        """Groups at some collectives look again."""
        collectives = [(place, parked.block.collective) for place, parked in self.items()]
        found = [self.pop(place) for place, collective in collectives if collective is not None and which(collective)]
        for group in found:
            self.ready.push(group)
        return found

    def go_on(self) -> bool:
        """Nobody can run. Returns whether any lanes go on without others.

        Warps no longer wait for the rest of their warpgroup. If all have that, lanes no longer wait for others that the mask of a
        collective names: what it gives for those is undefined, and what is wrong behind it is found, too.
        """
        parted, self.parted = self.parted, True
        self.release(lambda collective: collective.together)
        if not parted and self.ready:
            return True
        going = self.release(lambda collective: collective.masked)
        self.alone.update((group.block.position, warp) for group in going for warp in self.wave.warps.of_lane[group.lanes].tolist())
        return bool(going)

    def waits(self, block: BoundBlock, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_] | bool:
        """Which lanes wait at a collective for others."""
        return not self.alone or np.array([(block.position, warp) not in self.alone for warp in self.wave.warps.of_lane[lanes].tolist()])
