"""Memory that the program frees while a launch may still use it: a pool gives it to the next array of the same size and stream.

CuPy's pool has an arena for each stream, and gives an array the memory that was freed last there, if the size is the same (multiples of 512
bytes). So accesses of earlier launches to the old array touch the memory of the new one (SEMANTICS 12, R-GM14).

Not followed: parts of larger blocks that the pool splits, and torch's caching allocator.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from consan.checker.compiled.concurrent_launches import RetainedFlag, Rows
from consan.dataclass import dataclass
from consan.session.comparing.concurrent_launches import ConcurrentLaunches
from consan.session.comparing.streams import Stream

_UNIT: Final = 512  # bytes
Freed = tuple[int, int, Stream]  # the address, the bytes, and the stream that the memory was given to


@dataclass
class FreedMemory:
    """The memory that is free, with the accesses of launches that may still run. `freed`: since the last look, added to at any time.

    `pools`: a pool gives it again; without one the driver does, which waits.
    """

    concurrent: ConcurrentLaunches
    freed: list[Freed] = field(default_factory=list)
    pools: bool = True
    _free: dict[tuple[Stream, int], list[dict[int, Rows]]] = field(default_factory=dict)

    def look(self) -> None:
        """Take what was done to freed memory away from it: what is there next is other memory."""
        while self.freed:
            address, nbytes, stream = self.freed.pop(0)
            done = self.concurrent.detached(address, nbytes)
            for rows in done.values():
                rows["address"] -= np.uint64(address)
                rows["flags"] |= np.uint32(RetainedFlag.GIVEN_AGAIN)
            self._free.setdefault((stream, -(-nbytes // _UNIT)), []).append(done)

    def given(self, address: int, nbytes: int, stream: Stream) -> None:
        """A stream is given memory: what was freed last, if there is some."""
        self.look()
        free = self._free.get((stream, -(-nbytes // _UNIT)))
        if free and self.pools:
            done = free.pop()
            for rows in done.values():
                rows["address"] += np.uint64(address)
            self.concurrent.attach(done)

    def empty(self) -> None:
        """The pool gives its free memory back to the driver."""
        self.look()
        self._free.clear()
