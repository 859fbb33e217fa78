"""Loads that guess a value for a compare-and-swap, in the text of a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from consan.instrument.between import guesses
from consan.instrument.between.data import DataFlow
from consan.instrument.between.guesses import FirstGuess
from consan.instrument.control_flow import graph_of
from consan.instrument.ptx import parse

sys.path.append(str(Path(__file__).parents[2]))
from planted import plant

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{
.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .b32 total;
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [q];
mov.u32 %r9, total;
mov.u32 %r8, 5;
"""
LOAD = "ld.global.u32 %r1, [%rd1];"
NEW = "add.s32 %r2, %r1, 1;"
SWAP = "atom.global.cas.b32 %r3, [%rd1], %r1, %r2;"
REPEAT = "setp.ne.s32 %p1, %r1, %r3; mov.u32 %r1, %r3; @%p1 bra $L;"
STORE = "st.global.u32 [%rd2], {};"
LOOP = f"$L: {NEW} {SWAP} {REPEAT}"
SUMS = (
    "cvta.to.global.u64 %rd5, %rd1; mul.wide.s32 %rd4, %r8, 4; add.s64 %rd6, %rd1, %rd4; {} ld.global.u32 %r1, [%rd6]; "
    f"{NEW} atom.global.cas.b32 %r3, [%rd7], %r1, %r2;"
)

CASES = {
    "a loop": (f"{LOAD} {LOOP}", True),
    "one trial": (f"{LOAD} {NEW} {SWAP}", True),
    "a copy is compared": (f"{LOAD} mov.b32 %r5, %r1; {NEW} atom.global.cas.b32 %r3, [%rd1], %r5, %r2;", True),
    "a symbol and its address": (f"ld.shared.u32 %r1, [total]; {NEW} atom.shared.cas.b32 %r3, [%r9], %r1, %r2;", True),
    "what the swap has found is stored": (f"{LOAD} {LOOP} {STORE.format('%r3')}", True),
    "stored behind a swap that has found it": (
        f"{LOAD} mov.u32 %r3, %r1; $L: mov.u32 %r4, %r3; add.s32 %r2, %r4, 1; atom.global.cas.b32 %r3, [%rd1], %r4, %r2; "
        f"setp.ne.s32 %p1, %r4, %r3; @%p1 bra $L; {STORE.format('%r4')}",
        True,
    ),
    "stored where the swap has found another": (
        f"{LOAD} {NEW} {SWAP} setp.eq.s32 %p1, %r1, %r3; @%p1 bra $E; {STORE.format('%r1')} $E:", False,
    ),
    "it is stored": (f"{LOAD} {STORE.format('%r1')} {LOOP}", False),
    "it decides a branch": (f"{LOAD} setp.gt.s32 %p2, %r1, 3; @%p2 bra $E; {LOOP} $E:", False),
    "it is compared with another number": (f"{LOAD} {NEW} {SWAP} setp.ne.s32 %p1, %r1, %r8; @%p1 bra $E; mov.u32 %r5, 1; $E:", False),
    "it is an address": (f"{LOAD} cvt.u64.u32 %rd4, %r1; ld.global.u32 %r6, [%rd4]; {LOOP}", False),
    "another address": (f"{LOAD} {NEW} atom.global.cas.b32 %r3, [%rd2], %r1, %r2;", False),
    "another offset": (f"{LOAD} {NEW} atom.global.cas.b32 %r3, [%rd1+4], %r1, %r2;", False),
    "another value is compared": (f"{LOAD} {NEW} atom.global.cas.b32 %r3, [%rd1], %r8, %r2;", False),
    "another value is compared, too": (f"{LOAD} {NEW} {SWAP} atom.global.cas.b32 %r5, [%rd1], %r8, %r2;", False),
    "what follows from it is compared": (f"{LOAD} {NEW} atom.global.cas.b32 %r3, [%rd1], %r2, %r8;", False),
    "an exchange": (f"{LOAD} {NEW} atom.global.exch.b32 %r3, [%rd1], %r2;", False),
    "the address changes": (
        "mov.u64 %rd3, %rd1; ld.global.u32 %r1, [%rd3]; add.s64 %rd3, %rd3, 4; add.s32 %r2, %r1, 1; "
        "atom.global.cas.b32 %r3, [%rd3], %r1, %r2;",
        False,
    ),
    "a place by two sums": (SUMS.format("add.s64 %rd7, %rd5, %rd4;"), True),
    "a place by sums of other terms": (SUMS.format("add.s64 %rd7, %rd5, %rd2;"), False),
    "a place by sums with a term that changes": (SUMS.format("mov.u64 %rd4, 8; add.s64 %rd7, %rd5, %rd4;"), False),
    "no use": (LOAD, False),
}  # fmt: skip


def is_guess(text: str) -> bool:
    module = parse(f"{HEAD}{text.replace('; ', ';' + chr(10))}\nret;\n}}")
    (function,) = module.functions
    (load,) = (
        each for each in function.instructions() if each.operands[:1] and each.text.startswith(("ld.global.u32 %r1", "ld.shared.u32 %r1"))
    )
    return FirstGuess(load, graph_of(function), DataFlow(module, function)).holds()


@pytest.mark.parametrize("name", CASES)
def test_a_guess(name: str) -> None:
    text, guess = CASES[name]
    assert is_guess(text) is guess


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("self._others <= self._swaps", "True", "another value is compared, too"),
        ("key == compared and is_copy", "key == compared", "what follows from it is compared"),
        ("self._place(each) == self._place(self.load) is not None", "True", "another address"),
        ("(terms, address.offset)", "(terms, 0)", "another offset"),
        ("tuple(sorted(term for each in parts for term in each or ()))", "parts[0]", "a place by sums of other terms"),
        ("whole if None in parts else", "whole if parts == [None] else", "a place by sums with a term that changes"),
        ("return None if any(ends) else written(user)", "return written(user)", "it is stored"),
        ("is_wrong = node.guard.value !=", "is_wrong = node.guard.value ==", "stored where the swap has found another"),
        ("return found is not None and found in [", "return True or found in [", "it is compared with another number"),
        ("return None if terms is None else", "return", "the address changes"),
    ],
)
def test_a_fault(old: str, new: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, guesses, old, new)
    assert is_guess(CASES[name][0])
