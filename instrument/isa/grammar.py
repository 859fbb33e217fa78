"""The notation of the PTX ISA manual for one instruction form, compiled to an exact matcher.

Follows "Format and Semantics of Instruction Descriptions" (9.1) and the Syntax blocks of chapter 9. A form is a text such as
``ld{.weak}{.ss}{.level::cache_hint}{.vec}.type``. Words after a dot are modifiers, and braces make them optional. A word that names a
modifier class stands for any value of the class; every other word stands for itself. ``{.hi,.lo}`` is an optional choice. Matching is
exact: every part of the opcode is used, nothing is matched by prefix.

ptxas accepts the modifiers in any order, except that vector sizes and types keep theirs. CUTLASS (``ld.global.acquire.gpu``), Triton
(``atom.global.gpu.acq_rel.add``) and libcu++ (``atom.add.acquire.gpu``) rely on it. So an opcode is matched in the manual's order first,
and with permuted modifiers only if that fails. Data types, vector sizes, matrix layouts and, in forms with two of them, state spaces
keep their order even then.

Not handled: dependences between modifiers ("b128 only with sem"), target and version requirements. ptxas checks those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from consan.dataclass import dataclass
from consan.instrument.isa.classes import words

__all__ = ["DATA_TYPES", "SPACES", "ModifierSlot", "expand_form", "match_free", "match_ordered"]

DATA_TYPES = frozenset(
    words(
        "b1 b8 b16 b32 b64 b128 b1024 u2 s2 u4 s4 u8 u16 u32 u64 s8 s16 s32 s64 u16x2 s16x2 f16 f16x2 bf16 bf16x2 tf32 f32 f32x2 f64 pred "
        "e4m3 e5m2 e3m2 e2m3 e2m1 e4m3x2 e5m2x2 e4m3x4 e5m2x4 e2m1x2 e2m1x4 e2m3x2 e3m2x2 e2m3x4 e3m2x4 s2f6x2 ue8m0 ue4m3 ue8m0x2 "
        "b8x16 b6x16_p32 b4x16_p64"
    )
)
SPACES = frozenset(words("const global local param param::entry param::func shared shared::cta shared::cluster"))
_POSITIONAL = DATA_TYPES | {"v2", "v4", "v8", "row", "col"}
_GROUP = re.compile(r"\{([^{}]*)\}|\.([^.{}]+)")


@dataclass(frozen=True)
class ModifierSlot:
    """One modifier of a form: its class (or the word itself) and the words that it accepts."""

    name: str
    words: frozenset[str]
    optional: bool
    fixed_order: bool = False


def _slot(word: str, classes: Mapping[str, tuple[str, ...]], optional: bool) -> ModifierSlot:
    accepted = frozenset(classes.get(word, (word,)))
    return ModifierSlot(word, accepted, optional, bool(accepted & _POSITIONAL))


def _group(body: str, classes: Mapping[str, tuple[str, ...]]) -> list[list[ModifierSlot]]:
    """Alternatives of one brace group. A single modifier is an optional slot; ``{.sem.scope}`` is both or neither."""
    if "," in body:
        choice = tuple(word.strip().lstrip(".") for word in body.split(","))
        return [[ModifierSlot("|".join(choice), frozenset(choice), True, bool(_POSITIONAL.intersection(choice)))]]
    sequence = body.strip().lstrip(".").split(".")
    if len(sequence) == 1:
        return [[_slot(sequence[0], classes, True)]]
    return [[], [_slot(word, classes, False) for word in sequence]]


def expand_form(form: str, name: str, classes: Mapping[str, tuple[str, ...]]) -> list[tuple[ModifierSlot, ...]]:
    """Slots of the modifiers after `name` in `form`; one list for each choice of the multi-word groups."""
    if not form.startswith(name):
        raise ValueError(f"form {form!r} does not begin with its name {name!r}")
    tail = form[len(name) :]
    if _GROUP.sub("", tail):
        raise ValueError(f"not the notation of a form: {form!r}")
    pieces: list[list[list[ModifierSlot]]] = []
    for found in _GROUP.finditer(tail):
        group, word = found.groups()
        pieces.append(_group(group, classes) if group is not None else [[_slot(word, classes, False)]])
    return [_keep_space_order(_distinct(slot for piece in choice for slot in piece)) for choice in product(*pieces)]


def _distinct(slots: Iterable[ModifierSlot]) -> tuple[ModifierSlot, ...]:
    """The slots with slots of one class numbered: type, type#2."""
    seen: Counter[str] = Counter()
    named = []
    for slot in slots:
        seen[slot.name] += 1
        count = seen[slot.name]
        named.append(slot if count == 1 else replace(slot, name=f"{slot.name}#{count}"))
    return tuple(named)


def _keep_space_order(slots: tuple[ModifierSlot, ...]) -> tuple[ModifierSlot, ...]:
    # A copy names its destination space before its source space, so swapping them would make another copy.
    spaces = [slot for slot in slots if slot.words & SPACES]
    if len(spaces) < 2:
        return slots
    return tuple(replace(slot, fixed_order=slot.fixed_order or slot in spaces) for slot in slots)


def match_ordered(slots: tuple[ModifierSlot, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    """The parts of an opcode assigned to slots in the manual's order; None if they do not match."""
    return next(_ordered(slots, parts), None)


def _ordered(slots: tuple[ModifierSlot, ...], parts: tuple[str, ...]) -> Iterator[dict[str, str]]:
    if not slots:
        if not parts:
            yield {}
        return
    slot, rest = slots[0], slots[1:]
    if parts and parts[0] in slot.words:
        for found in _ordered(rest, parts[1:]):
            yield {slot.name: parts[0], **found}
    if slot.optional:
        yield from _ordered(rest, parts)


def match_free(slots: tuple[ModifierSlot, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    """As `match_ordered`, in any order that keeps the order of the positional slots."""
    if not sum(not slot.optional for slot in slots) <= len(parts) <= len(slots):
        return None
    found = next(_free(slots, frozenset(range(len(slots))), -1, parts), None)
    return None if found is None else {slot.name: found[slot.name] for slot in slots if slot.name in found}


def _free(slots: tuple[ModifierSlot, ...], left: frozenset[int], last: int, parts: tuple[str, ...]) -> Iterator[dict[str, str]]:
    if not parts:
        if all(slots[index].optional for index in left):
            yield {}
        return
    for index in sorted(left):
        slot = slots[index]
        if parts[0] not in slot.words or (slot.fixed_order and index < last):
            continue
        following = index if slot.fixed_order else last
        for found in _free(slots, left - {index}, following, parts[1:]):
            yield {slot.name: parts[0], **found}
