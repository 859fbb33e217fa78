"""Calls by address whose target may lie outside of the module (ISA "call", "Kernel and Function Directives").

The target is known if the register can only hold addresses of the module's functions: moved there, chosen from such, or loaded from a
variable that the module initialises with them; or if `.calltargets` lists it. A pointer from any other memory (a parameter, an object) may
name a function that another module brought, whose accesses nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from consan.instrument.control_flow import definitions, key_of
from consan.instrument.isa import chooses, is_move, lookup, row_of
from consan.instrument.ptx import Address, Directive, Function, Instruction, Module, Operand, Register, Symbol, SymbolOffset

__all__ = ["unknown_targets"]


def unknown_targets(module: Module, function: Function) -> Iterator[Instruction]:
    """The calls by address of a function whose target may lie outside of the module."""
    calls = [each for each in function.instructions() if row_of(each).calls]
    by_address = [(each, pointer) for each in calls if isinstance(pointer := _operand(each, "func"), Register)]
    if by_address:
        values = _Pointers(module, function)
        yield from (call for call, pointer in by_address if not values.lists(call) and not values.is_known(call, pointer, frozenset()))


def _operand(instruction: Instruction, role: str) -> Operand | None:
    row = lookup(instruction.parts)
    assert row is not None
    return dict(zip(row.roles(instruction), instruction.operands, strict=True)).get(role)


class _Pointers:
    """Where the pointers of a function come from."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module, self._function = module, function
        self._definitions = definitions(function)

    @cached_property
    def _functions(self) -> frozenset[str]:
        return frozenset(each.name for each in self._module.functions if each.body is not None)

    @cached_property
    def _tables(self) -> frozenset[str]:
        """Variables of the module that are initialised with its functions."""
        found = set()
        for variable in self._module.variables:
            _, _, values = variable.text.partition("=")
            words = values.replace(",", " ").replace("{", " ").replace("}", " ").replace(";", " ").replace("generic(", " ").split()
            if any(word in self._functions for word in words):
                found |= {name.name for name in variable.names}
        return frozenset(found)

    def lists(self, call: Instruction) -> bool:
        """Whether `.calltargets` lists the functions that a call may reach."""
        named = _operand(call, "targets")
        assert self._function.body is not None
        labels = (each for each in self._function.body.walk() if isinstance(each, Directive))
        return isinstance(named, Symbol) and any(each.label == named.name and each.name == ".calltargets" for each in labels)

    def is_known(self, user: Instruction, value: Operand, seen: frozenset[str]) -> bool:
        """Whether a value can only be the address of a function of the module."""
        if isinstance(value, Symbol):
            return value.name in self._functions
        if not isinstance(value, Register) or value.name in seen:
            return isinstance(value, Register)  # around a loop, the other definitions decide
        made = self._definitions.get(key_of(user.scope, value.name), ())
        return bool(made) and all(self._gives_function(each, seen | {value.name}) for each in made)

    def _gives_function(self, made: Instruction, seen: frozenset[str]) -> bool:
        if is_move(made):
            return self.is_known(made, made.operands[1], seen)
        if chooses(made):
            return all(self.is_known(made, each, seen) for each in made.operands[1:3])
        return row_of(made).is_load and self._in_table(made, made.operands[1], seen)

    def _in_table(self, user: Instruction, address: Operand, seen: frozenset[str]) -> bool:
        """Whether an address is made of the address of a table of functions, and of numbers."""
        base = address.base if isinstance(address, (Address, SymbolOffset)) else address
        if isinstance(base, Symbol):
            return base.name in self._tables
        if not isinstance(base, Register) or base.name in seen:
            return isinstance(base, Register)
        made = self._definitions.get(key_of(user.scope, base.name), ())
        return bool(made) and all(self._gives_table(each, seen | {base.name}) for each in made)

    def _gives_table(self, made: Instruction, seen: frozenset[str]) -> bool:
        row = row_of(made)
        return (row.is_arithmetic or row.is_of_addresses) and any(self._in_table(made, each, seen) for each in made.operands[1:])
