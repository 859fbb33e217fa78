"""Describes a decision of a schedule in a sentence: who is delayed, where, and until when.

Places are in the source if the kernel has line information, else in its PTX. The end of a delay comes from a run of the same
schedule (`DecisionWords`). Without one the sentence gives the delay in steps: blocks run by any thread.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Final

from consan.backends.cpu.engine.decisions import FIRST, GIVE_UP, HOLD, LAND, START, Decision, Who
from consan.backends.cpu.state.schedule import AT_ONCE
from consan.triage.outcome import DecisionPlace, DecisionWords

_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd"}
_FULL: Final = 0xFFFFFFFF
_PARTS: Final = 4  # words of an opcode
_BASELINES: Final = {
    "prompt": "nobody is held back, and what is asynchronous is done at once",
    "late": "nobody is held back, and what is asynchronous is done as late as it can be",
}


def describe(decision: Decision, described: DecisionWords) -> str:
    """One sentence, without a full stop."""
    extent, place = described.rank_grid, place_of(described.place)
    who = whom(decision.who, extent)
    part = f" for {_cta(decision.receiver, extent)}" if decision.receiver is not None else _times(decision.who)
    operation = f"the {opcode(described.place)} at {place}, issued by {who}{part},"
    sentence = {
        START: f"{_ctas(decision.who, extent)} starts late",
        HOLD: f"{who} is held back before {place}{_times(decision.who)}",
        LAND: f"{operation} {_lands(decision)}",
        FIRST: f"when no thread can run, {operation} lands before {_over(described)}",
        GIVE_UP: f"the wait at {place} of {who}{_times(decision.who)} times out at once",
    }[decision.kind]
    delayed = decision.kind in (START, HOLD) or (decision.kind == LAND and decision.steps != AT_ONCE)
    return sentence + (_until(decision, described) if delayed else "")


def baseline(name: str) -> str:
    """The decision for everything that has none of its own."""
    return _BASELINES[name]


def _lands(decision: Decision) -> str:
    return "lands at once" if decision.steps == AT_ONCE else "is delayed"


def _over(described: DecisionWords) -> str:
    return f"the {opcode(described.over)} at {place_of(described.over)}"


def _until(decision: Decision, described: DecisionWords) -> str:
    if described.until is None or described.block is None:
        return f" for {decision.steps} steps" if decision.steps > 0 else " as long as it can be"
    until = f"warp {described.warp} of {_cta(described.block, described.rank_grid)} had come to {place_of(described.until)}"
    return f" until {until}" + (" and no thread could go on" if described.idle else "")


def place_of(place: DecisionPlace | None) -> str:
    """`file.cu:24 (called at file.cu:43)`, or a line of the PTX."""
    if place is None:
        return "a place in the shadow runtime"
    called = f" (called at {place.call})" if place.call else ""
    return f"{os.path.basename(place.file)}:{place.line}{called}" if place.file else f"PTX line {place.ptx_line}"


def opcode(place: DecisionPlace | None) -> str:
    """The opcode without its guard."""
    words = [word for word in (place.ptx if place else "").split() if not word.startswith("@")]
    return short_opcode(words[0]) if words else "operation"


def short_opcode(opcode: str) -> str:
    """The opcode's first words, and whether it is a multicast. A bulk copy's full opcode fills a line."""
    parts = opcode.rstrip(";").split(".")
    plain = itertools.takewhile(lambda part: "::" not in part, parts[:_PARTS])
    return ("multicast " if "multicast::cluster" in parts else "") + ".".join(plain)


def whom(who: Sequence[Who], rank_grid: int = 0) -> str:
    """The owners of the threads. `rank_grid`: as in `DecisionWords`."""
    warps = list(dict.fromkeys((each.block, each.warp) for each in who))
    if len(warps) > 1:
        return f"{len(warps)} warps of {_ctas(who, rank_grid)}"
    (block, warp), lanes = warps[0], who[0].lanes
    lane = f"lane {lanes.bit_length() - 1} of " if lanes & (lanes - 1) == 0 else "" if lanes == _FULL else "some lanes of "
    return f"{lane}warp {warp} of {_cta(block, rank_grid)}"


def _ctas(who: Sequence[Who], rank_grid: int) -> str:
    blocks = list(dict.fromkeys(each.block for each in who))
    return _cta(blocks[0], rank_grid) if len(blocks) == 1 else f"{len(blocks)} CTAs"


def _cta(block: Sequence[int], rank_grid: int) -> str:
    x, y, z = block
    place, rank = ((x, y, z % rank_grid), f" of rank {z // rank_grid}") if rank_grid else (block, "")
    return f"CTA ({', '.join(map(str, place))}){rank}"


def _times(who: Sequence[Who]) -> str:
    times = {each.nth for each in who}
    if times == {1} or len(times) > 1:
        return ""
    (nth,) = times
    return f" (the {nth}{'th' if nth % 100 in (11, 12, 13) else _ORDINALS.get(nth % 10, 'th')} time)"
