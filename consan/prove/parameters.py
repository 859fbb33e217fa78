"""Words of the parameters of a launch, and relations between them that a proof may assume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consan.dataclass import dataclass
from consan.prove.environment import Environment
from consan.prove.solver import Formula, z3


@dataclass(frozen=True)
class LaunchWord:
    """A word of the parameters. `name`: of its variable; empty for a pointer. `written`: whether the kernel writes where it points to."""

    place: int
    offset: int
    bits: int = 64
    name: str = ""
    written: bool = False

    def value(self, parameters: Sequence[bytes]) -> int:
        """Its value in a launch: pointers are unsigned."""
        data = parameters[self.place][self.offset : self.offset + self.bits // 8]
        return int.from_bytes(data, "little", signed=bool(self.name))


@dataclass(frozen=True)
class ParameterRelation:
    """A word of the parameters beside another one, or beside a number. `how`: ">=", "<=", or "%": the number divides it."""

    word: LaunchWord
    how: str
    other: LaunchWord | None = None
    number: int = 0

    def __str__(self) -> str:
        if self.how == "%":
            return f"{self.number} divides {self.word.name}"
        return f"{self.word.name} {self.how} {self.number if self.other is None else self.other.name}"

    def holds(self, parameters: Sequence[bytes]) -> bool:
        """Whether a launch has it."""
        value = self.word.value(parameters)
        other = self.number if self.other is None else self.other.value(parameters)
        return {">=": value >= other, "<=": value <= other, "%": self.how == "%" and value % other == 0}[self.how]

    def formula(self, environment: Environment) -> Formula:
        """The same for all launches."""
        term, other = (
            z3.IntVal(self.number) if each is None else environment.word(each.place, each.offset, each.bits).term
            for each in (self.word, self.other)
        )
        return term % self.number == 0 if self.how == "%" else term >= other if self.how == ">=" else term <= other

    @classmethod
    def restored(cls, given: dict[str, Any]) -> ParameterRelation:
        """From its parts by name."""
        word, other = (None if given[name] is None else LaunchWord(**given[name]) for name in ("word", "other"))
        assert word is not None
        return cls(word, given["how"], other, given["number"])
