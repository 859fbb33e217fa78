"""The virtual machine and the instruction table: every operation has a row, and the rows that the machine does not execute are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.backends.cpu.engine.control import ENDS
from consan.backends.cpu.semantics.dispatch import STEPS
from consan.backends.cpu.semantics.ops import OPERATIONS, semantics
from consan.instrument.isa import ROWS, Row, lookup

LIST = Path(__file__).with_name("rows_not_executed.txt")


def executes(row: Row) -> bool:
    ends = row.flow or row.suspends or row.family == "barrier"
    return (row.flow or row.family) in ENDS if ends else bool({row.form, row.name} & (STEPS.keys() | OPERATIONS.keys()))


def test_every_operation_has_a_row() -> None:
    known = {row.form for row in ROWS} | {row.name for row in ROWS}
    assert not (STEPS.keys() | OPERATIONS.keys()) - known
    assert ENDS.keys() <= {row.flow for row in ROWS} | {row.family for row in ROWS if row.suspends}


def test_the_rows_that_the_machine_does_not_execute_are_listed() -> None:
    """Update the list with a row that is new or that the machine has learnt: it is where one sees what the machine lacks."""
    listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert sorted({row.form for row in ROWS if not executes(row)}) == listed


@pytest.mark.parametrize("opcode", ["vote.ballot.sync.b32", "add.f32.rn", "setp.f32.lt", "ld.u32.shared"])
def test_the_machine_takes_the_orders_that_assemblers_take(opcode: str) -> None:
    row = lookup(tuple(opcode.split(".")))
    assert row is not None
    assert executes(row)
    assert row.family == "load" or semantics(tuple(opcode.split("."))) is not None
