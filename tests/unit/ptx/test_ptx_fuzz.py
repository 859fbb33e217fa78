"""Damaged PTX, and the two ways of reading it.

Whatever is done to a text, the reader either succeeds, and then prints it back unchanged, or raises `PtxSyntaxError`. And the
fast path (one regular expression per statement) must see exactly what the exact reader sees.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st
from ptx_examples import HEADER, KERNEL, REFUSED, UNUSUAL, kernel

from consan.instrument.ptx import (
    Block,
    Directive,
    Function,
    Instruction,
    LocDirective,
    PtxSyntaxError,
    Variable,
    declarations,
    operand_parser,
    parse,
    print_module,
    statements,
)

BASES = [KERNEL, *map(kernel, UNUSUAL), *(kernel(statement) for statement, _, _ in REFUSED)]
AWKWARD = "/* */ // :: << @@ WARP_SZ _ 1.5 0x 0f - .. L: a[1] (1+2)*3"
TOKENS = sorted({*re.findall(r"[\w$%.]+|\S", KERNEL), *AWKWARD.split(), *"\0\t\n \u00e9'\\"})
_FAST = statements._STATEMENT
_NOTHING = re.compile(r"(?!)")


class _BracesOnly:
    """The fast path reduced to braces: all statements go to the exact reader."""

    def match(self, text: str, offset: int) -> re.Match[str] | None:
        found = _FAST.match(text, offset)
        return found if found is not None and (found.lastindex or 0) >= statements._OPEN else None


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(BASES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(len(HEADER), len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 5, 40])))
        text = text[:start] + draw(st.sampled_from(["", *TOKENS])) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def tree(text: str) -> list[object]:
    """All that a consumer can see of a module."""
    module = parse(text)
    assert print_module(module) == text
    seen: list[object] = [module.version, module.targets, module.files]
    for item in module.items:
        seen.append((type(item), item.span))
        if isinstance(item, Variable):
            seen.append(declaration(item))
        for statement in item.body.walk() if isinstance(item, Function) and item.body is not None else ():
            seen.append((type(statement), statement.span))
            if isinstance(statement, Instruction):
                seen.append((statement.opcode, statement.parts, statement.predicate, statement.operands, statement.loc))
            elif isinstance(statement, Variable):
                seen.append(declaration(statement))
            elif isinstance(statement, LocDirective):
                seen.append(statement.loc)
            elif isinstance(statement, Directive):
                seen.append((statement.name, statement.label, statement.targets))
            elif isinstance(statement, Block):
                assert text[statement.open] + text[statement.close] == "{}"
    return seen


def declaration(variable: Variable) -> object:
    sizes = [variable.nbytes(name) for name in variable.names]
    return (variable.linkage, variable.space, variable.type, variable.align, variable.vector, variable.attributes, variable.names, sizes)


def outcome(text: str) -> list[object]:
    try:
        return tree(text)
    except PtxSyntaxError as error:
        failure = error
    lines = text.split("\n")
    assert 1 <= failure.line <= len(lines)
    assert 1 <= failure.column <= len(lines[failure.line - 1]) + 1
    return [failure.line, failure.column, failure.message]


@settings(max_examples=600, deadline=2000)
@given(damaged())
def test_damaged_text(text: str) -> None:
    fast = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "_STATEMENT", _BracesOnly())
        patch.setattr(declarations, "_COMMON", _NOTHING)
        patch.setattr(operand_parser, "_COMMON", _NOTHING)
        assert outcome(text) == fast


@pytest.mark.parametrize("text", BASES, ids=range(len(BASES)))
def test_every_truncation(text: str) -> None:
    failed = 0
    for end in range(0, len(text), 1 if len(text) < 500 else 7):
        failed += isinstance(outcome(text[:end])[0], int)
    assert failed


@settings(max_examples=200, deadline=2000)
@given(st.text(st.sampled_from('ab1.;:,{}()[]@%!|+-_"/*# \n\0<>='), max_size=60))
def test_noise_in_a_body(noise: str) -> None:
    outcome(kernel(noise))
    outcome(HEADER + noise)
    outcome(noise)


def test_the_comparison_compares() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "_STATEMENT", _BracesOnly())
        with pytest.raises(AssertionError):
            assert tree(KERNEL) == tree(KERNEL.replace("%r14", "%r15"))
