"""Real instructions against the opcode table: family, status, accesses and written registers of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.instrument.isa import InstructionLike, canonical, destinations, is_memory_or_sync, lookup, sources
from consan.instrument.isa.roles import names
from consan.instrument.ptx import parse

_HERE = Path(__file__).parent
_MODULE = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred p, complete, P1;\n{}\n}}\n"


def _lines(name: str, columns: int) -> list[tuple[str, ...]]:
    text = (_HERE / name).read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(cell.strip() for cell in line.split(" | ", columns - 1)) for line in lines]


def _parse(texts: list[str]) -> list[InstructionLike]:
    module = parse(_MODULE.format("\n".join(f"{text};" for text in texts)))
    body = module.functions[0].body
    assert body is not None
    return list(body.instructions())


INSTRUCTIONS = _lines("isa_instructions.txt", 5)
PARSED = dict(zip((line[4] for line in INSTRUCTIONS), _parse([line[4] for line in INSTRUCTIONS]), strict=True))
OPCODES = _lines("isa_opcodes.txt", 3)


def _accesses(instruction: InstructionLike) -> str:
    row = lookup(instruction.parts)
    assert row is not None
    shown = [(a, f" {a.sem}.{a.scope}" if a.is_strong else "") for a in row.accesses(instruction)]
    return "; ".join(f"{a.access} {a.qualified_space} {a.total_bytes}{order}" for a, order in shown) or "-"


def test_corpus_is_large_enough() -> None:
    assert len(INSTRUCTIONS) > 300
    assert len(OPCODES) > 200


@pytest.mark.parametrize(("family", "status", "accesses", "written", "text"), INSTRUCTIONS, ids=[line[4][:50] for line in INSTRUCTIONS])
def test_instruction(family: str, status: str, accesses: str, written: str, text: str) -> None:
    instruction = PARSED[text]
    row = lookup(instruction.parts)
    assert row is not None
    assert (row.family, row.status) == (family, status)
    assert _accesses(instruction) == accesses
    assert (" ".join(destinations(instruction)) or "-") == written


@pytest.mark.parametrize("text", [line[4] for line in INSTRUCTIONS if line[0] not in ("control", "call")])
def test_every_register_is_read_or_written(text: str) -> None:
    instruction = PARSED[text]
    named = {name for operand in instruction.operands for name in names(operand)}
    assert named <= set(destinations(instruction)) | set(sources(instruction))


@pytest.mark.parametrize(("family", "status", "opcode"), OPCODES, ids=[line[2] for line in OPCODES])
def test_opcode(family: str, status: str, opcode: str) -> None:
    parts = tuple(opcode.split("."))
    row = lookup(parts)
    assert row is not None
    assert (row.family, row.status) == (family, status)
    assert is_memory_or_sync(parts)
    assert lookup(canonical(parts)) is row
