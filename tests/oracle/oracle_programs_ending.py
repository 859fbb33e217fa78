"""Random programs of a CTA whose warps end one after another, while the others go on to barriers of all threads.

They are launched without clusters, where the cluster's barrier is one of the CTA. A barrier does not wait for those that have ended, and
orders nothing of what they did (SEMANTICS 3). What does is an mbarrier: each warp arrives at one of its own, once, and others wait for
that at any time after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import draws as st
from oracle_programs import CLEAR, FULL, Guard, Operation, Part, Program, accesses, guards, warp_barriers
from oracle_programs_async import BARS, init, wait_for
from oracle_programs_cluster import MEET, MEET_RELAXED

WARPS = 4
KINDS = (*("access",) * 6, *("full",) * 3, "meet", "meet", "relaxed", "warp", "end", "end", "arrive", "await", "await")
_MEETINGS = {"full": FULL, "meet": MEET, "relaxed": MEET_RELAXED}


class _Maker:
    """Makes one program, and follows which warps are there and which have arrived."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.there, self.arrived = list(range(WARPS)), list[int]()

    def parts(self, kind: str, number: str) -> Iterator[Part]:
        """One step."""
        draw = self.draw
        if kind == "end" and len(self.there) > 1:
            warp = draw(st.sampled_from(self.there))
            self.there.remove(warp)
            yield Operation(("{g}ret;",), Guard("warp", "eq", warp))
        elif kind == "arrive" and (left := [warp for warp in self.there if warp not in self.arrived]):
            warp = draw(st.sampled_from(left))
            self.arrived.append(warp)
            yield Operation((f"{{g}}mbarrier.arrive.shared.b64 %token, {BARS[warp]};",), Guard("thread", "eq", 32 * warp))
        elif kind == "await" and self.arrived:
            yield wait_for(draw(st.sampled_from(self.arrived)), 0, draw(guards()), number)
        elif kind in _MEETINGS:
            yield _MEETINGS[kind]
        elif kind == "warp":
            yield draw(warp_barriers())
        else:
            yield draw(accesses())


@st.composite
def ending(draw: Any) -> Program:
    """Accesses, barriers of all threads and of warps, of a cluster of one CTA, ends of warps, and mbarriers."""
    maker = _Maker(draw)
    parts: list[Part] = [*draw(st.sampled_from([(), CLEAR, CLEAR, CLEAR])), init([1] * WARPS)]
    density = draw(st.sampled_from([0, 1, 2, 3]))
    for step, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=3, max_size=16))):
        parts += maker.parts(kind, f"{{n}}_{step}")
        if draw(st.integers(0, 3)) < density:
            parts.append(FULL)
    return Program(WARPS, tuple(parts))
