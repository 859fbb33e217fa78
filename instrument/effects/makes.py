"""The effects that each form of an instruction makes, as its row says them (instrument/isa)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from consan.dataclass import dataclass
from consan.instrument.effects.model import VALUES, Effect, When, WordValue, leaves

Attribute = Callable[[Mapping[str, str], Mapping[str, Any]], int]


@dataclass(frozen=True)
class Makes:
    """A kind, the roles of the operands that give its leaves, and the words of the opcode that set its flags.

    `numbers`: leaves that the form itself gives. `computed`: numbers that follow from the modifiers of the opcode, by their class, and the
    operands, by their role. How an operand is stored follows from the role of its leaf; several operands go into words in a row.
    `when`: in place of the time at which its kind is recorded. `only`: where the access is "strong", or "weak".
    """

    kind: type[Effect]
    operands: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: Mapping[str, int | WordValue] = field(default_factory=dict)
    computed: Mapping[str, Attribute] = field(default_factory=dict)
    when: When | None = None
    only: str = ""

    @property
    def recorded(self) -> When:
        """When the recorder writes it."""
        return self.kind.recorded if self.when is None else self.when

    @property
    def is_of_checked_memory(self) -> bool:
        """Whether it is recorded only where global memory is checked."""
        return self.recorded in (When.CHECKED, When.CHECKED_BEHIND)

    def attributes(self, parts: tuple[str, ...], modifiers: Mapping[str, str], operands: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the text gives. A flag is set if all of its words are in the opcode."""
        flags = {name: words <= set(parts) for name, words in self.words.items()}
        return {**flags, **self.numbers, **{name: compute(modifiers, operands) for name, compute in self.computed.items()}}

    def without(self, *leaves: str) -> Makes:
        """The same without some operands."""
        return replace(self, operands={name: role for name, role in self.operands.items() if name not in leaves})

    def where_checked(self) -> Makes:
        """The same, recorded only where global memory is checked."""
        return replace(self, when=When.CHECKED)

    def where(self, strength: str) -> Makes:
        """The same for "strong" accesses only, or for "weak" ones."""
        return replace(self, only=strength)


def makes(kind: type[Effect], **given: str | int | Attribute) -> Makes:
    """From `leaf="role"`, `flag=".word"`, `leaf=number` and `leaf=function`, in the order in which operands are stored."""
    values = {leaf.name for leaf in leaves(kind) if leaf.means in VALUES}
    texts = {name: text for name, text in given.items() if isinstance(text, str)}
    words = {name: frozenset(text[1:].split(".")) for name, text in texts.items() if text.startswith(".")}
    numbers = {name: WordValue(each) if name in values else each for name, each in given.items() if isinstance(each, int)}
    computed = {name: each for name, each in given.items() if callable(each)}
    return Makes(kind, {name: text for name, text in texts.items() if name not in words}, words, numbers, computed)
