"""One store by which several threads write the same bytes: in one iteration of a loop only, or also in different ones."""

from __future__ import annotations

import pytest

from consan.reports.model import Access, Finding
from consan.reports.words.wording import describe

WRITES = tuple(Access("write", "st.shared.u32", file="k.cu", line=9, thread=(lane, 0, 0), warp=0, lane=lane) for lane in (0, 1))


@pytest.mark.parametrize(("shape", "told"), [("one-store", False), ("looped-store", True)])
@pytest.mark.parametrize("situation", ["no-warp-sync", "no-barrier"])
def test_a_store_in_a_loop_may_be_of_different_iterations(situation: str, shape: str, told: bool) -> None:
    found = describe(Finding("data-race", "k", hazard="WAW", accesses=WRITES), situation, shape, position=shape, loop_at=" at k.cu:8")
    assert ("in one iteration of the loop at k.cu:8 or in different ones" in found.message) == told
    assert ("at the end of the loop's body" in found.fix) == told
