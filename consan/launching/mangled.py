"""The parameters of a C++ function, read from its mangled name (Itanium C++ ABI, section 5.1 "External Names").

Decides for each parameter whether it is a pointer, an integer, a float or a class, and its name in messages. Follows substitutions
and template arguments, because a parameter may only refer to one.

Not handled: expressions, decltype, local names, pointers to members. The parameters of a name with one of these are unknown: None, not a
guess.
"""

from __future__ import annotations

from typing import Final

from consan.dataclass import dataclass
from consan.launching.parameter_kind import CLASS, FLOAT, INTEGER, POINTER, UNSIGNED, CType

_BUILTIN: Final = {
    "v": CType(CLASS, "void"), "b": CType(UNSIGNED, "bool", 1), "c": CType(INTEGER, "char", 1), "a": CType(INTEGER, "signed char", 1),
    "h": CType(UNSIGNED, "unsigned char", 1), "s": CType(INTEGER, "short", 2), "t": CType(UNSIGNED, "unsigned short", 2),
    "i": CType(INTEGER, "int", 4), "j": CType(UNSIGNED, "unsigned", 4), "l": CType(INTEGER, "long", 8),
    "m": CType(UNSIGNED, "unsigned long", 8), "x": CType(INTEGER, "long long", 8), "y": CType(UNSIGNED, "unsigned long long", 8),
    "w": CType(INTEGER, "wchar_t", 4), "f": CType(FLOAT, "float", 4), "d": CType(FLOAT, "double", 8),
    "Ds": CType(UNSIGNED, "char16_t", 2), "Di": CType(UNSIGNED, "char32_t", 4), "Du": CType(UNSIGNED, "char8_t", 1),
    "Dh": CType(CLASS, "half"), "Dn": CType(POINTER, "nullptr_t", 8),
}  # fmt: skip
_CLASS: Final = CType(CLASS, "a class")
_QUALIFIERS: Final = ("r", "V", "K")
_ABBREVIATED: Final = tuple("tabsiod")  # St, Sa, Sb, Ss, Si, So, Sd: of namespace std


class _UnknownError(Exception):
    """The name has a part that this reader does not know."""


@dataclass(frozen=True)
class _Pack:
    """The template arguments of a parameter pack."""

    kinds: tuple[CType, ...]


_Argument = CType | _Pack


def parameters(symbol: str) -> tuple[CType, ...] | None:
    """The kinds of a function's parameters; None if the name is not mangled or cannot be read."""
    if not symbol.startswith("_Z"):
        return None
    try:
        return _Reader(symbol).function()
    except (_UnknownError, IndexError, ValueError, RecursionError):
        return None


class _Reader:
    """One pass over a mangled name. `seen` are the substitution candidates, in the order in which the ABI numbers them."""

    def __init__(self, symbol: str) -> None:
        self._text = symbol
        self._at = 2
        self._seen: list[_Argument] = []
        self._arguments: tuple[_Argument, ...] = ()

    def function(self) -> tuple[CType, ...]:
        """Name, then types; the name of a template is followed by its return type."""
        if self._name():
            self._type()
        kinds = self._types_until("")
        return () if [kind.text for kind in kinds] == ["void"] else kinds

    # -- characters ------------------------------------------------------------------------------------------------------

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _accept(self, word: str) -> bool:
        found = self._text.startswith(word, self._at)
        self._at += len(word) * found
        return found

    def _number(self) -> int:
        start = self._at
        while self._peek().isdigit():
            self._at += 1
        return int(self._text[start : self._at])

    def _word(self) -> None:
        length = self._number()
        self._at += length
        if self._at > len(self._text):
            raise _UnknownError

    # -- names -----------------------------------------------------------------------------------------------------------

    def _name(self) -> bool:
        """Read the function's own name. Returns whether it ends with template arguments."""
        if self._accept("N"):
            return self._nested()
        self._accept("St")
        self._word()
        if self._peek() != "I":
            return False
        self._keep(_CLASS)
        self._arguments = self._template_arguments()
        return True

    def _nested(self) -> bool:
        """A nested name up to its E; each proper prefix of it is a candidate."""
        while self._peek() in _QUALIFIERS:
            self._at += 1
        template = False
        while not self._accept("E"):
            if self._peek() == "I":
                self._arguments, template = self._template_arguments(), True
            elif self._peek() == "S":
                self._substitution()
                continue
            else:
                self._word()
                template = False
            if self._peek() != "E":
                self._keep(_CLASS)
        return template

    def _keep(self, argument: _Argument) -> _Argument:
        self._seen.append(argument)
        return argument

    def _substitution(self) -> _Argument:
        """S_, S0_, ... are earlier ones; St and others abbreviate names of std."""
        self._at += 1
        if self._peek() in _ABBREVIATED:
            self._at += 1
            return _CLASS
        return self._seen[self._index()]

    def _index(self) -> int:
        """`_` is the first, `0_` the second."""
        end = self._text.index("_", self._at)
        digits, self._at = self._text[self._at : end], end + 1
        return int(digits, 36) + 1 if digits else 0

    def _template_arguments(self) -> tuple[_Argument, ...]:
        self._at += 1
        found: list[_Argument] = []
        while not self._accept("E"):
            found.append(self._template_argument())
        return tuple(found)

    def _template_argument(self) -> _Argument:
        if self._accept("J"):
            return _Pack(self._types_until("E"))
        if self._accept("L"):
            self._literal()
            return _CLASS
        return self._type()

    def _literal(self) -> None:
        if self._peek(2) == "_Z":
            raise _UnknownError
        self._type()
        self._at = self._text.index("E", self._at) + 1

    # -- types -----------------------------------------------------------------------------------------------------------

    def _types_until(self, end: str) -> tuple[CType, ...]:
        """All types up to `end`, or to the end of the name; a pack gives as many as it has."""
        kinds: list[CType] = []
        while not (self._accept(end) if end else self._at == len(self._text)):
            if end and self._accept("L"):
                self._literal()
                continue
            found = self._pack() if self._accept("Dp") else self._type()
            kinds += found.kinds if isinstance(found, _Pack) else [found]
        return tuple(kinds)

    def _pack(self) -> _Argument:
        found = self._any_type()
        return self._keep(found)

    def _type(self) -> CType:
        found = self._any_type()
        if isinstance(found, _Pack):
            raise _UnknownError
        return found

    def _any_type(self) -> _Argument:
        for word in (self._peek(2), self._peek()):
            if word in _BUILTIN:
                self._at += len(word)
                return _BUILTIN[word]
        start = self._peek()
        if start.isdigit():
            self._word()
            return self._class()
        readers = {"P": self._pointer, "R": self._pointer, "O": self._pointer, "T": self._template_parameter, "F": self._function_type}
        readers |= {"A": self._array, "S": self._substituted, "N": self._nested_type, **dict.fromkeys(_QUALIFIERS, self._qualified)}
        if start not in readers:
            raise _UnknownError
        return readers[start]()

    def _class(self) -> _Argument:
        """Read what follows the name of a class, which may be a template."""
        found = self._keep(_CLASS)
        return self._keep(self._after_arguments()) if self._peek() == "I" else found

    def _after_arguments(self) -> _Argument:
        self._template_arguments()
        return _CLASS

    def _pointer(self) -> _Argument:
        self._at += 1
        inner = self._any_type()
        return self._keep(_Pack(tuple(map(_pointer_to, inner.kinds))) if isinstance(inner, _Pack) else _pointer_to(inner))

    def _qualified(self) -> _Argument:
        while self._peek() in _QUALIFIERS:
            self._at += 1
        return self._keep(self._any_type())

    def _template_parameter(self) -> _Argument:
        self._at += 1
        found = self._arguments[self._index()]
        if self._peek() == "I":
            raise _UnknownError
        return self._keep(found)

    def _function_type(self) -> _Argument:
        self._at += 1
        self._types_until("E")
        return self._keep(CType(CLASS, "a function"))

    def _array(self) -> _Argument:
        self._at += 1
        if self._peek() != "_":
            self._number()
        if not self._accept("_"):
            raise _UnknownError
        self._type()
        return self._keep(CType(CLASS, "an array"))

    def _substituted(self) -> _Argument:
        named = self._peek(2) == "St"
        found = self._substitution()
        if named:
            self._word()
            return self._class()
        return self._keep(self._after_arguments()) if self._peek() == "I" else found

    def _nested_type(self) -> _Argument:
        self._at += 1
        kept = self._arguments
        self._nested()
        self._arguments = kept
        return self._keep(_CLASS)


def _pointer_to(inner: CType) -> CType:
    return CType(POINTER, f"{inner.text}*" if inner.kind in (INTEGER, UNSIGNED, FLOAT) else "a pointer", 8)
