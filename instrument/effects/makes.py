"""The effect that each form of an instruction makes, where its row says all of it (instrument/isa)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from consan.instrument.effects.model import Effect


@dataclass(frozen=True)
class Makes:
    """A kind, the roles of the operands that give its leaves, and the words of the opcode that set its flags.

    `numbers`: leaves that the form itself gives. The role "mbar" is an address in shared memory; other roles are numbers.
    """

    kind: type[Effect]
    operands: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)

    def flags(self, parts: tuple[str, ...]) -> dict[str, bool]:
        """The flags that an opcode sets."""
        return {name: word in parts for name, word in self.words.items()}


def makes(kind: type[Effect], **leaves: str | int) -> Makes:
    """From `leaf="role"`, `flag=".word"` and `leaf=number`, in the order in which operands are stored."""
    words = {name: text[1:] for name, text in leaves.items() if isinstance(text, str) and text.startswith(".")}
    operands = {name: text for name, text in leaves.items() if isinstance(text, str) and name not in words}
    return Makes(kind, operands, words, {name: number for name, number in leaves.items() if isinstance(number, int)})
