"""Keeps on disk the histories that earlier processes have replayed without a finding. The key is all that their replay depends on.

These are the recorded module, the reading of the ISA, the checker's source and the recorder's, the shape of the launch and
the window of shared memory. A history with a finding, or one that could not be judged in full, is replayed in each process.

Not handled: eviction. Beyond `MOST` names of a module no more are kept.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import field

from consan.checker.compiled.build import sources
from consan.dataclass import dataclass
from consan.instrument.record import Recorded
from consan.instrument.stored import fingerprint
from consan.toolchain.cache import CACHE, key

MOST = 1 << 16
_NAME_BYTES = 16


@dataclass
class Earlier:
    """Those of one module."""

    recorded: Recorded
    _new: set[bytes] = field(default_factory=set)

    @functools.cached_property
    def _file(self) -> str:
        """The name of their entry, for the thread that replays: a launch does not wait for a hash of all that."""
        checker = [part for item in sorted(sources().items()) for part in item]
        return key("histories", self.recorded.ptx, str(self.recorded.isa), fingerprint(), *checker)

    @functools.cached_property
    def _known(self) -> set[bytes]:
        """Those that are stored, and those that were added: replays read them first."""
        return self._stored()

    def knows(self, name: tuple[object, ...]) -> bool:
        """Whether a history needs no replay. `name`: the shape of the launch, the window, and the hash of the history."""
        return _digest(name) in self._known

    def add(self, name: tuple[object, ...]) -> None:
        """Keep the name of a history in which nothing was found."""
        if len(self._known) < MOST:
            self._new.add(_digest(name))

    def store(self) -> None:
        """Write what was added, beside what other processes have written meanwhile."""
        if self._new:
            self._known |= self._new | self._stored()
            self._new.clear()
            CACHE.put(self._file, b"".join(sorted(self._known)))

    def _stored(self) -> set[bytes]:
        data = CACHE.get(self._file) or b""
        return {data[at : at + _NAME_BYTES] for at in range(0, len(data), _NAME_BYTES)}


def _digest(name: tuple[object, ...]) -> bytes:
    return hashlib.blake2b(repr(name).encode(), digest_size=_NAME_BYTES).digest()
