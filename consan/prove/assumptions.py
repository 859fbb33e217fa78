"""Assumptions of the user about a launch: `n <= 1024 and n % 4 == 0`, with the names of the parameters, `gridDim.x` and whole numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from consan._errors import UsageError
from consan.instrument.ptx import Param
from consan.prove.environment import Environment
from consan.prove.solver import Formula, z3

_COMPARED: Final[dict[type[ast.cmpop], Callable[[Any, Any], Formula]]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip
_COMPUTED: Final[dict[type[ast.operator], Callable[[Any, Any], Formula]]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Mod: lambda a, b: a % b,
    ast.FloorDiv: lambda a, b: a / b,
}  # fmt: skip


class Assumption:
    """One assumption of the user. Raises `UsageError` where the text is none."""

    def __init__(self, text: str, names: Mapping[str, tuple[str, int]]) -> None:
        """`names`: the parameter of each name as the PTX calls it, and its bits."""
        self.text, self._names = text, names
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise self._error() from None
        self._check(self._tree)

    def formula(self, environment: Environment) -> Formula:
        """The condition on a launch. A parameter whose value it gives is that number from then on: masks and shifts by it are known."""
        for name, value in _values(self._tree):
            if name in self._names:
                environment.give(*self._names[name], value)
        return self._formula(self._tree, environment)

    def _error(self, why: str = "expected a comparison, such as 'n <= 1024'") -> UsageError:
        return UsageError(f"--assume '{self.text}': {why}")

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._check(value)
        elif not isinstance(node, ast.Compare):
            raise self._error()
        for each in ast.walk(node):
            if isinstance(each, ast.BinOp) and type(each.op) not in _COMPUTED:
                raise self._error()
            if isinstance(each, ast.Name) and each.id not in self._names and each.id != "gridDim":
                raise self._error(f"there is no integer parameter {each.id}; there are: {', '.join(self._names) or 'none'}")

    def _formula(self, node: ast.AST, environment: Environment) -> Formula:
        if isinstance(node, ast.BoolOp):
            parts = [self._formula(each, environment) for each in node.values]
            return z3.And(*parts) if isinstance(node.op, ast.And) else z3.Or(*parts)
        assert isinstance(node, ast.Compare)
        terms = [self._term(each, environment) for each in (node.left, *node.comparators)]
        found = []
        for operator, one, other in zip(node.ops, terms, terms[1:], strict=False):
            if type(operator) not in _COMPARED:
                raise self._error()
            found.append(_COMPARED[type(operator)](one, other))
        return z3.And(*found)

    def _term(self, node: ast.AST, environment: Environment) -> Formula:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return z3.IntVal(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._term(node.operand, environment)
        if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            return _COMPUTED[type(node.op)](self._term(node.left, environment), self._term(node.right, environment))
        if isinstance(node, ast.Name) and node.id in self._names:
            name, bits = self._names[node.id]
            found = environment.parameter(name, 0, bits)
            if found is not None and found.base is None:
                return found.term
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gridDim" and node.attr in "xyz":
            return environment.grid["xyz".index(node.attr)].term
        raise self._error()


def _values(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that must have one value where a condition holds: `n == 4`, also joined by `and` to others."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for each in node.values:
            yield from _values(each)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        sides = node.left, node.comparators[0]
        for name, value in (sides, sides[::-1]):
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int):
                yield name.id, value.value


def names_of(parameters: list[Param], declared: list[str], pointers: Collection[int]) -> dict[str, tuple[str, int]]:
    """The integer parameters by their names in the source, or in the PTX. `declared`: those in the source, if they are known."""
    names = declared if len(declared) == len(parameters) else [each.name for each in parameters]
    plain = [(name, each) for place, (name, each) in enumerate(zip(names, parameters, strict=True)) if place not in pointers]
    integers = {name: each for name, each in plain if each.size is None and each.type[0] in "usb"}
    return {name: (each.name, 8 * each.nbytes) for name, each in integers.items()}
