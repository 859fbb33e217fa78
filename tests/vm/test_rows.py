"""The virtual machine and the instruction table: every operation has a row, and the guide tells what is checked and what runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from forms import executes, table

from consan.backends.cpu.engine.control import ENDS
from consan.backends.cpu.semantics.dispatch import STEPS
from consan.backends.cpu.semantics.ops import OPERATIONS, semantics
from consan.instrument.isa import ROWS, lookup

PAGE = Path(__file__).parents[2] / "tutorials" / "guide" / "forms.md"


def test_every_operation_has_a_row() -> None:
    known = {row.form for row in ROWS} | {row.name for row in ROWS}
    assert not (STEPS.keys() | OPERATIONS.keys()) - known
    assert ENDS.keys() <= {row.flow for row in ROWS} | {row.family for row in ROWS if row.suspends}


def test_the_table_of_the_guide_is_current() -> None:
    """`python tests/quality/forms.py > tutorials/guide/forms.md` after a change of a row, of the recorder or of the machine."""
    assert PAGE.read_text() == table()


@pytest.mark.parametrize("opcode", ["vote.ballot.sync.b32", "add.f32.rn", "setp.f32.lt", "ld.u32.shared"])
def test_the_machine_takes_the_orders_that_assemblers_take(opcode: str) -> None:
    row = lookup(tuple(opcode.split(".")))
    assert row is not None
    assert executes(row)
    assert row.family == "load" or semantics(tuple(opcode.split("."))) is not None
