"""The bytes that a cp.async reads: `src-size` and `ignore-src` shorten only what is read (ISA "cp.async")."""

from __future__ import annotations

from consan.instrument.ptx import Immediate, Negated, Operand, Register, Symbol
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.emit import Snippet, predicate_of, register_bits, word


def source_bytes(work: Work, whole: int, snippet: Snippet) -> str:
    """Bytes that the copy reads: a src-size register or literal, or 0 if its ignore-src predicate is true."""
    roles, operands, scope = work.event.roles, work.instruction.operands, work.instruction.scope
    if "src-size" not in roles:
        return str(whole)
    operand: Operand = operands[roles.index("src-size")]
    if isinstance(operand, Immediate):
        return str(int(operand.value))
    if isinstance(operand, Negated) or (isinstance(operand, (Register, Symbol)) and register_bits(operand.name, scope) == 1):
        name, negated = predicate_of(operand)
        target = snippet.register("b32")
        first, second = (whole, 0) if negated else (0, whole)
        snippet.add(f"selp.b32 {target}, {first}, {second}, {name};")
        return target
    return word(operand, snippet, scope)
