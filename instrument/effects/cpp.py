"""The C++ of effects: a structure for each kind, which reads its leaves from the log of a lane, and a dispatch by overload.

A structure is a view: it holds a reference to the log, which is at an event. `dispatch` calls a function with the view of the event; a kind
that no overload takes does not compile.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Any

from consan.instrument.effects.kinds import EFFECTS
from consan.instrument.effects.model import VALUES, Effect, EffectField, Role, leaves

TRAITS = ("asynchronous", "tensor_memory", "mbarrier", "places", "repeats")
_READS: dict[Any, tuple[str, str, str]] = {  # the C++ type, the parameter, and how a leaf is read; {0}: its slot
    Role.PLACE: ("u32", "", "log.sum(log.event().offset, log.event().address_word)"),
    Role.WIDE: ("u64", "", "log.wide(log.event().value_word)"),
    Role.DIGEST: ("u32", "", "log.at_word(log.event().value_word)"),
    **dict.fromkeys((Role.MAP, Role.WORDS, Role.ACCESS), ("u32", "u32 place", "log.at_word(log.event().value_word + (i32)place)")),
    **dict.fromkeys(VALUES, ("u32", "", "log.sum(log.event().{0}, log.event().{0}_word)")),
    int: ("u32", "", "(u32)log.event().{0}"),
    bool: ("bool", "", "log.event().flags & {0}"),
}
_OPTIONAL = (Role.LOOSE, Role.WIDE, Role.DIGEST, Role.MAP)


def name_of(effect: type[Effect]) -> str:
    """The name of a kind in C++: BULK_LOAD."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", effect.__name__).upper()


def named(name: str) -> type[Effect]:
    """The kind of a name."""
    return next(effect for effect in EFFECTS if effect.__name__ == name)


EventKind = enum.IntEnum("EventKind", {name_of(effect): effect.number for effect in EFFECTS})  # type: ignore[misc]


def header() -> str:
    """The text of effects.hpp."""
    return "\n".join(["// Generated from instrument/effects; do not edit.", "#pragma once", '#include "log.hpp"', *_text()]) + "\n"


def _text() -> Iterator[str]:
    yield "namespace effects {"
    yield f"enum class Trait : u8 {{ {', '.join(f'{name} = {1 << at}' for at, name in enumerate(TRAITS))} }};"
    of_kinds = [sum(getattr(effect, name) << at for at, name in enumerate(TRAITS)) for effect in EFFECTS]
    yield f"constexpr u8 TRAITS[] = {{ {', '.join(map(str, (0, *of_kinds)))} }};"
    yield "inline bool has(const Event &event, Trait trait) { return TRAITS[event.kind] & (u8)trait; }"
    written: set[type] = set()
    for effect in EFFECTS:
        yield from _structures(effect, written)
    yield "// One case for each kind. NOLINTNEXTLINE(readability-function-size)"
    yield "template <typename On> auto dispatch(const LaneLog &log, On &&on) {\n    switch (log.event().kind) {"
    for effect in EFFECTS:
        yield f"    case {name_of(effect)}: return on({effect.__name__}{{log}});"
    yield "    default: __builtin_unreachable();\n    }\n}\n}  // namespace effects"


def _structures(effect: type[Effect], written: set[type]) -> Iterator[str]:
    """The structure of a class, behind that of the class that it extends."""
    if effect in written:
        return
    written.add(effect)
    base = next((each for each in effect.__bases__ if each is not Effect and issubclass(each, Effect) and len(leaves(each)) > 1), Effect)
    if effect is not Effect:
        yield from _structures(base, written)
    inherited = {leaf.name for leaf in leaves(base)} if effect is not Effect else set[str]()
    own = [leaf for leaf in leaves(effect) if leaf.name not in inherited]
    assert all(leaf in leaves(effect) for leaf in leaves(base)), f"{effect.__name__} moves what {base.__name__} has"
    yield f"struct {effect.__name__}{f' : {base.__name__}' if effect is not Effect else ''} {{"
    if effect is Effect:
        yield "    const LaneLog &log;\n    explicit Effect(const LaneLog &log) : log(log) {}"
        yield "    const Event &event() const { return log.event(); }\n    u32 site() const { return (u32)log.event().site; }"
    else:
        yield f"    using {base.__name__}::{base.__name__};"
        yield from (f"    static constexpr bool {name} = {str(getattr(effect, name)).lower()};" for name in TRAITS[:3])
        if effect in EFFECTS:
            yield f"    static constexpr EventKind kind = {name_of(effect)};"
    for leaf in own:
        yield from _accessors(leaf)
    yield "};"


def _accessors(leaf: EffectField) -> Iterator[str]:
    kind, parameter, text = _READS[leaf.means]
    yield f"    {kind} {leaf.name}({parameter}) const {{ return {text.format(leaf.slot)}; }}"
    if leaf.means in _OPTIONAL:
        word = f"{leaf.slot}_word" if leaf.means in VALUES else leaf.slot
        yield f"    bool has_{leaf.name}() const {{ return log.event().{word} >= 0; }}"
