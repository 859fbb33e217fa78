"""One store by which several threads write the same bytes: in one iteration of a loop only, or also in different ones."""

from __future__ import annotations

import pytest

from consan.instrument.relations import Order
from consan.instrument.sites import Site
from consan.reports.model import Access, Finding
from consan.reports.words.ordering import in_program_order
from consan.reports.words.wording import describe

WRITES = tuple(Access("write", "st.shared.u32", file="k.cu", line=9, thread=(lane, 0, 0), warp=0, lane=lane) for lane in (0, 1))


STORE = Site(1, "k", "st.shared.u32", "store", "write", "shared", 4, 9, "st.shared.u32 [%r1], %r2;")


class Text:
    """A text in which the store may come before itself, or not."""

    def __init__(self, order: Order | None) -> None:
        self._order = order

    def order(self, *_: object) -> Order | None:
        return self._order

    def checks(self, _: Site) -> frozenset[int]:
        return frozenset()

    def updates(self, _: Site) -> frozenset[int]:
        return frozenset()


@pytest.mark.parametrize(("order", "shape"), [(None, "one-store"), (Order(swapped=False, carried=True), "looped-store")])
def test_shape(order: Order | None, shape: str) -> None:
    found = Finding("data-race", "k", hazard="WAW", accesses=WRITES)
    assert in_program_order(found, (STORE, STORE), Text(order), "no-warp-sync")[2] == shape


@pytest.mark.parametrize(("shape", "is_named"), [("one-store", False), ("looped-store", True)])
@pytest.mark.parametrize("situation", ["no-warp-sync", "no-barrier"])
def test_a_store_in_a_loop_may_be_of_different_iterations(situation: str, shape: str, is_named: bool) -> None:
    found = describe(Finding("data-race", "k", hazard="WAW", accesses=WRITES), situation, shape, position=shape, loop_at=" at k.cu:8")
    assert ("in one iteration of the loop at k.cu:8 or in different ones" in found.message) == is_named
    assert ("at the end of the loop's body" in found.fix) == is_named
