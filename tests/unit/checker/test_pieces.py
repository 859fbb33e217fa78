"""What a change may add is the PTX of instructions whose rows make its effects."""

from __future__ import annotations

import pytest

from consan.checker.questions import pieces
from consan.checker.questions.pieces import Piece, ptx_of
from consan.instrument import effects
from consan.instrument.isa import row_of
from consan.instrument.ptx import parse

PIECES = {name: piece for name, piece in vars(pieces).items() if name.isupper() and isinstance(piece, tuple)}
PIECES |= {"copy_wait": pieces.copy_wait(1), "bulk_wait": pieces.bulk_wait(0, read=False), "bulk_wait_read": pieces.bulk_wait(1, read=True)}
PIECES |= {"product_wait": pieces.product_wait(0), "phase_wait": pieces.phase_wait(16, 1), "arrival": pieces.arrival(16)}
PIECES |= {"invalidation": pieces.invalidation(16)}
MODULE = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {{\n{0}\nret;\n}}\n"


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_rows_make_what_the_text_adds(piece: Piece) -> None:
    for event in piece:
        rows = [row_of(each) for each in parse(MODULE.format(ptx_of(event))).functions[0].instructions()]
        assert any(row.does(type(event)) for row in rows)


def test_every_text_is_tried() -> None:
    assert {type(event) for piece in PIECES.values() for event in piece} == set(pieces._TEXTS)


def test_another_text_would_be_seen() -> None:
    (row, _) = (row_of(each) for each in parse(MODULE.format("bar.warp.sync -1;")).functions[0].instructions())
    assert not row.does(effects.CtaBarrier)
