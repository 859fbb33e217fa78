"""Results of the recording pass on disk: the next process neither reads nor rewrites the module.

The texts for the host (instrument/record/text/expansion.py) are kept beside it once they were needed.

Not handled: damaged files (the digest of the cache detects them) and other versions of the pass (the key excludes them).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeVar

from consan.dataclass import dataclass
from consan.instrument import communicates
from consan.instrument.ptx import Module
from consan.instrument.record import Expansion, Recorded, module, record
from consan.instrument.stored import fingerprint
from consan.toolchain import codec
from consan.toolchain.cache import CACHE, key

Made = TypeVar("Made")


@dataclass
class Rewriting:
    """How a text is recorded. `read`: gives the module. `keeps`: on disk. `refusal`: why no kernel may be. `made`: what was not there."""

    ptx: str
    read: Callable[[], Module]
    global_races: bool
    isa: bool
    leaves: bool
    keeps: bool
    refusal: str = ""
    delays: bool = False
    made: list[Recorded] = field(default_factory=list)

    def done(self) -> tuple[Recorded, bool]:
        """The recorded module, and whether CTAs may wait for each other through global memory. Raises `PtxSyntaxError`."""
        made = self.made

        def make() -> tuple[Recorded, bool]:
            made.append(self._recorded())
            return _alone(made[0]), communicates(self.read())

        found, waits = self._kept("recorded", make)
        again = functools.cache(lambda: made[0] if made else self._recorded())
        if found.compact:
            found = replace(found, expansion=Expansion(lambda: self._kept("expansion", lambda: _expansion(again()))))
        return found, waits

    def _recorded(self) -> Recorded:
        return record(
            self.read(), global_races=self.global_races, isa=self.isa, leaves=self.leaves, refusal=self.refusal, delays=self.delays
        )

    def _kept(self, part: str, make: Callable[[], Made]) -> Made:
        """One of the values, from disk or made."""
        if not self.keeps:
            return make()
        made: list[Made] = []

        def data() -> bytes:
            made.append(make())
            return codec.dumps(made[0])

        how = f"{self.global_races} {self.isa} {self.leaves} {module.COMPACT} {self.refusal} {self.delays}"
        stored = CACHE.fetch(key("rewritten", codec.FORM, part, self.ptx, how, fingerprint()), data)
        found: Made = made[0] if made else codec.loads(stored)
        return found


def _alone(recorded: Recorded) -> Recorded:
    """Without what only this process can have."""
    return replace(recorded, expansion=None)


def _expansion(recorded: Recorded) -> Recorded:
    assert recorded.expansion is not None
    return recorded.expansion.text
