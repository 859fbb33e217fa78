"""Operands of one instruction that are stored in words in a row: the digest of them is hashed (Role.WORDS)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from consan.instrument.ptx import Address, Block, Negated, Operand, Register, Symbol, Vector
from consan.instrument.record.text import text
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import Snippet, predicate_of, register_bits, shared_address, value_words, word

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_HELD = "%__consan_w"
_PREDICATE, _WIDE = 1, 64  # bits


def stored(kernel: FunctionRecorder, work: Work, roles: list[str]) -> int:
    """Store the operands with these roles, those that the instruction has; returns the position of the first word."""
    block, snippet, scope = kernel.open_block(), Snippet(), work.instruction.scope
    first, folded = block.template.words, (snippet.register("b32"), snippet.register("b32"))
    snippet.add("".join(f"mov.b32 {register}, 0;" for register in folded))
    brackets = {spec.role for spec in work.row.specs if spec.shape == "address"}
    for role in roles:
        operand = operand_of(work, role)
        for value in _values(operand, snippet, scope, padded=role not in brackets) if operand is not None else ():
            snippet.add(f"mov.b32 {_HELD}, {value};")
            block.append(_HELD, snippet)
            snippet.add(text.fold(_HELD, folded))
    snippet.add("".join(map(text.hash_word, folded)))
    kernel.pending += snippet.text()
    return first


def _values(operand: Operand, snippet: Snippet, scope: Block, *, padded: bool) -> Iterator[str]:
    """The words of an operand. `padded`: an address in tensor memory that stands in place of a descriptor has two words, as that."""
    if isinstance(operand, Address):
        yield from (shared_address(snippet, operand, scope), *(["0"] if padded else []))
    elif isinstance(operand, Vector):
        yield from (word(each, snippet, scope) for each in operand.elements)
    elif (bits := _bits(operand, scope)) == _PREDICATE:
        (name, negated), value = predicate_of(operand), snippet.register("b32")
        snippet.add(f"selp.b32 {value}, {'0, 1' if negated else '1, 0'}, {name};")
        yield value
    else:
        yield from value_words([operand], 8, snippet, scope) if bits == _WIDE else (word(operand, snippet, scope),)


def _bits(operand: Operand, scope: Block) -> int:
    if isinstance(operand, Negated):
        return _PREDICATE
    if isinstance(operand, (Register, Symbol)) and scope.is_register(operand.name):
        return register_bits(operand.name, scope)
    return 0
