"""Effects, their leaves, and where a row of a template holds them.

A leaf is what a thread gives: a *value*, the sum of a number and of a word of the log, so that `[%r8]` and `[%r8+132]` share a word and
repairs add to one. Its role says how its word is stored. An *attribute* is what the text says: a number, or a yes or no.

A row is 14 numbers of 32 bits, alike for all kinds, so that events stay one array in the order of the text. Each leaf and each attribute
has a slot of it, which `leaves` chooses. Nobody but `Effect.numbers` and the C++ that is generated (cpp.py) knows slots.
"""

from __future__ import annotations

import enum
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from consan.dataclass import dataclass
from consan.instrument.effects.flags import FLAGS

NO_WORD = -1
LANES = 32


@dataclass(frozen=True)
class WordValue:
    """A number, and the position of a word in the block to which it is added (NO_WORD: none). All bits of a word set: it did not happen."""

    number: int = 0
    word: int = NO_WORD

    @property
    def is_known(self) -> bool:
        """Whether the text says it."""
        return self.word == NO_WORD

    def plus(self, step: int) -> WordValue:
        """So much more."""
        return WordValue(self.number + step, self.word)


class Role(enum.Enum):
    """How a thread stores a leaf."""

    PLACE = "one hashed word, with the guard folded in"
    NUMBER = "one hashed word"
    LOOSE = "one word that is not hashed"
    WIDE = "two words that are not hashed: an address in global memory, lower half first"
    DIGEST = "one word that is not hashed; it differs where stored values differ"
    MAP = "the words of a tensor map, and coordinates; the address is not hashed"
    WORDS = "words in a row whose digest is hashed"
    ACCESS = "the words of a strong access: address, readings of a clock, values; not hashed"


class When(enum.Enum):
    """When the recorder writes an effect of an instruction."""

    BEFORE = "before the instruction"
    BEHIND = "behind it: what it says is known then"
    FENCES = "before it, where a fence can matter"
    CHECKED = "before it, where global memory is checked"
    CHECKED_BEHIND = "behind it, where global memory is checked"
    NEVER = "never: only in changes of a text"


# The types of the fields of an effect.
Place = Annotated[WordValue, Role.PLACE]
Number = Annotated[WordValue, Role.NUMBER]
Loose = Annotated[WordValue, Role.LOOSE]
Wide = Annotated[int, Role.WIDE]  # the first of its words; NO_WORD: none
Digest = Annotated[int, Role.DIGEST]
Map = Annotated[int, Role.MAP]
Words = Annotated[int, Role.WORDS]
Access = Annotated[int, Role.ACCESS]

_MEANS: Final[dict[Any, Role | type]] = {
    "Place": Role.PLACE,
    "Number": Role.NUMBER,
    "Loose": Role.LOOSE,
    "Wide": Role.WIDE,
    "Digest": Role.DIGEST,
    "Map": Role.MAP,
    "Words": Role.WORDS,
    "Access": Role.ACCESS,
    "int": int,
    "bool": bool,
}
"""By the type of a field, as it is written."""

VALUES: Final = (Role.NUMBER, Role.LOOSE)
ROW: Final = (
    *("kind", "flags", "site", "bytes", "offset", "address_word", "guard_word", "value_word"),
    *("a", "a_word", "b", "b_word", "c", "c_word"),
)
_EMPTY: Final = {name: NO_WORD if name.endswith("_word") else 0 for name in ROW}


class EffectField(NamedTuple):
    """A field of an effect: its role, `int` of a number that the text says or `bool`; its slot: a column of the row, or a flag."""

    name: str
    means: Role | type
    slot: str


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The fields of all effects. `guard`: the word that says whether the instruction executes, where no place has it folded in."""

    number: ClassVar[int] = 0  # of the kind (kinds.py)
    asynchronous: ClassVar[bool] = False  # of an asynchronous proxy, or of operations in flight (asynchronous.hpp, tensor_memory.hpp)
    tensor_memory: ClassVar[bool] = False  # of tcgen05
    mbarrier: ClassVar[bool] = False  # an operation on an mbarrier
    places: ClassVar[bool] = False  # it matters where in the text other threads are (holds.hpp)
    repeats: ClassVar[bool] = False  # iterations that have only such effects may be skipped (repeats.hpp)
    recorded: ClassVar[When] = When.BEFORE
    access: ClassVar[str] = "none"  # how its site accesses memory: none, read, write; "place": as the row says of the place

    site: int = 0
    guard: int = NO_WORD
    ignored: bool = False  # it is compared with no other (functions/annotated.py)

    @property
    def has_words(self) -> bool:
        """Whether words of its block say what it did."""
        return any(number != NO_WORD for name, number in zip(ROW, self.numbers(), strict=True) if name.endswith("_word"))

    def changed(self, **fields: Any) -> Effect:
        """With other values of some fields."""
        return replace(self, **fields)

    def numbers(self) -> tuple[int, ...]:
        """The numbers of a row, in the order of ROW."""
        row = _EMPTY | {"kind": self.number, "site": self.site, "guard_word": self.guard}
        for name, means, slot in leaves(type(self)):
            value = getattr(self, name)
            if means is bool:
                row["flags"] |= FLAGS[slot] * value
            elif means is Role.PLACE:
                row["offset"], row["address_word"] = value.number, value.word
            elif means in VALUES:
                row[slot], row[f"{slot}_word"] = value.number, value.word
            else:
                row[slot] = value
        return tuple(row[name] for name in ROW)


_LEAVES: Final[dict[type[Effect], tuple[EffectField, ...]]] = {}


def leaves(effect: type[Effect]) -> tuple[EffectField, ...]:
    """The fields of a kind that its row holds, beside `site` and `guard`."""
    if effect not in _LEAVES:
        _LEAVES[effect] = _leaves(effect)
    return _LEAVES[effect]


def _leaves(effect: type[Effect]) -> tuple[EffectField, ...]:
    """Values take the slots a, b and c; numbers take what is left."""
    means = {each.name: _MEANS[each.type] for each in fields(effect) if each.name not in ("site", "guard")}
    values = [name for name, each in means.items() if each in VALUES]
    slots = dict(zip(values, "abc", strict=False))
    free = ["bytes", *(["offset"] if Role.PLACE not in means.values() else []), *(each for each in "cba" if each not in slots.values())]
    slots |= dict(zip((name for name, each in means.items() if each is int), free, strict=False))
    slots |= {name: _other_slot(name, each) for name, each in means.items() if name not in slots}
    return tuple(EffectField(name, each, slots[name]) for name, each in means.items())


def _other_slot(name: str, means: Role | type) -> str:
    if means is bool:
        return name.upper()
    return "offset" if means is Role.PLACE else "value_word"


class InFlight(Effect):
    """An effect in an asynchronous proxy, or one that concerns operations in flight."""

    asynchronous = True


ZERO: Final = WordValue()


@dataclass(frozen=True, kw_only=True)
class AtShared(Effect):
    """An effect at an address in shared memory. `ranked`: the address names a CTA of the cluster; `narrow`: of .cta scope."""

    at: Place = ZERO
    ranked: bool = False
    narrow: bool = False


ONE: Final = WordValue(1)
ALL_THREADS: Final = WordValue(-1)
