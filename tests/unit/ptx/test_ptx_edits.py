"""Edits: text spliced into a module in a fixed order."""

from __future__ import annotations

import pytest
from ptx_examples import KERNEL, kernel

from consan._errors import InternalError
from consan.instrument.ptx import Edits, Label, Module, parse

TEXT = kernel("L: bar.sync 0;exit;")


@pytest.fixture
def module() -> Module:
    return parse(TEXT)


def test_nothing(module: Module) -> None:
    assert Edits(module).apply() == TEXT


def test_order_at_one_offset(module: Module) -> None:
    barrier, end, _ = module.functions[0].instructions()
    assert barrier.end == end.start
    edits = Edits(module)
    edits.insert_before(end, "<4>")
    edits.insert_at(end.start, "<3>")
    edits.insert_after(barrier, "<1>")
    edits.insert_before(end, "<5>")
    edits.insert_after(barrier, "<2>")
    assert len(edits) == 5
    assert "bar.sync 0;<1><2><3><4><5>exit;" in edits.apply()


def test_replacement_keeps_its_neighbours(module: Module) -> None:
    barrier, end, _ = module.functions[0].instructions()
    edits = Edits(module)
    edits.replace(barrier, "nanosleep.u32 1;")
    edits.insert_before(barrier, "<before>")
    edits.insert_after(barrier, "<after>")
    edits.replace(end, "")
    assert "L: <before>nanosleep.u32 1;<after>\nret;" in edits.apply()


def test_labels_and_blocks(module: Module) -> None:
    body = module.functions[0].body
    assert body is not None
    edits = Edits(module)
    edits.insert_after(next(s for s in body.walk() if isinstance(s, Label)), " trap;")
    edits.insert_at(body.open + 1, " // first")
    edits.insert_at(body.close, "// last\n")
    assert edits.apply() == TEXT.replace("{", "{ // first").replace("}", "// last\n}").replace("L:", "L: trap;")


def test_edits_must_not_overlap(module: Module) -> None:
    barrier, _, _ = module.functions[0].instructions()
    twice = Edits(module)
    twice.replace(barrier, "a")
    twice.replace(barrier, "b")
    inside = Edits(module)
    inside.replace(barrier, "a")
    inside.insert_at(barrier.start + 1, "b")
    for edits in (twice, inside):
        with pytest.raises(InternalError, match="inside text that another edit replaces"):
            edits.apply()


def test_offset_outside_the_text(module: Module) -> None:
    with pytest.raises(InternalError, match="no offset"):
        Edits(module).insert_at(len(TEXT) + 1, "x")


def test_every_node_can_be_marked() -> None:
    module = parse(KERNEL)
    edits = Edits(module)
    for function in module.functions:
        for statement in function.body.walk() if function.body else ():
            edits.insert_before(statement, "/*<*/")
            edits.insert_after(statement, "/*>*/")
    marked = edits.apply()
    assert len(edits) > 80
    assert marked.replace("/*<*/", "").replace("/*>*/", "") == KERNEL
    assert [f.name for f in parse(marked).functions] == [f.name for f in module.functions]
