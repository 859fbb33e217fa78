"""The places of the threads of an interrupted launch, in words for a report's `incomplete` reasons.

Input are waiters as in findings (`block`, `warp`, `lanes`, `why`, `file`, ...). They are grouped by place; the
places with the most threads come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from consan.reports.counts import plural, runs
from consan.reports.formats.accesses import short
from consan.reports.source.places import opcode_of

Waiter = Mapping[str, Any]

SHOWN: Final = 4  # places shown; the rest is counted
RUNNING: Final = "running"
_WAITS: Final = {
    "waiting": "waiting",
    "barrier": "waiting at barrier {barrier}",
    "warp-barrier": "waiting for lanes of the warp",
    "warp-collective": "waiting for lanes of the warp",
    "cluster-barrier": "waiting at the barrier of the cluster",
    "columns": "waiting for columns of tensor memory",
    "pair": "waiting in tcgen05.alloc for the other CTA of the pair",
    "mbarrier": "waiting for phase {phase} of the mbarrier at shared offset {mbarrier}",
}


def unfinished(kernel: str, why: str, waiters: Sequence[Waiter] = (), over: int = 0, threads: int = 0) -> str:
    """The reason for a launch that ended early: why, and where its threads were if that is known.

    `over`: threads without a place, which were in loops or at waits. `threads`: all threads of the launch; 0: unknown.
    """
    where = "; ".join(filter(None, (positions(waiters), *_others(waiters, over, threads)))) if waiters else ""
    return f"{kernel} did not run to its end: {why}" + (f"; where its threads were: {where}" if where else "")


def _others(waiters: Sequence[Waiter], over: int, threads: int) -> Iterator[str]:
    if over:
        yield f"and {plural(over, 'more thread')} in loops or at waits"
    rest = threads - over - _lanes(waiters)
    if rest > 0:
        yield f"and {plural(rest, 'more thread')} at a barrier, at the end or not started"


def positions(waiters: Iterable[Waiter]) -> str:
    """`warps 0 and 1 of CTA (0,0,0), 64 lanes, at k.cu:12:5, `ld.volatile.shared.u32``, and so on."""
    groups: dict[tuple[str, str], list[Waiter]] = {}
    for waiter in waiters:
        groups.setdefault((_state(waiter), _place(waiter)), []).append(waiter)
    ordered = sorted(groups.items(), key=lambda item: -_lanes(item[1]))
    described = [", ".join(filter(None, (_who(group), state, place))) for (state, place), group in ordered[:SHOWN]]
    more = len(ordered) - SHOWN
    return "; ".join(described + ([f"and {plural(more, 'more place')}"] if more > 0 else []))


def _state(waiter: Waiter) -> str:
    """The operation that a warp waits for, in words; empty for a running warp."""
    why = str(waiter.get("why", ""))
    words = _WAITS.get(why, "" if why == RUNNING else why)
    return words.format_map({"barrier": "", "phase": "", "mbarrier": "", **waiter})


def _place(waiter: Waiter) -> str:
    ptx = str(waiter.get("ptx") or "").strip()
    opcode = f", `{opcode_of(ptx)}`" if ptx else ""
    if waiter.get("line"):
        column = f":{waiter['column']}" if waiter.get("column") else ""
        return f"at {short(str(waiter.get('file', '')))}:{waiter['line']}{column}{opcode}"
    return f"at PTX line {waiter['ptx_line']}{opcode}" if waiter.get("ptx_line") else ""


def _lanes(group: Sequence[Waiter]) -> int:
    """Number of threads in a group: a GPU's records hold the count, the virtual machine's a mask per warp."""
    return sum(int(waiter.get("threads") or int(waiter.get("lanes") or 0).bit_count()) for waiter in group)


def _who(group: Sequence[Waiter]) -> str:
    blocks = list(dict.fromkeys(tuple(waiter["block"]) for waiter in group if waiter.get("block") is not None))
    warps = sorted({int(waiter["warp"]) for waiter in group if waiter.get("warp") is not None})
    named = f"warp{'s' * (len(warps) > 1)} {_runs(warps)}" if warps and len(blocks) < 2 else plural(len(group), "warp")
    return f"{named} of {_ctas(blocks)}, {plural(_lanes(group), 'lane')}"


def _ctas(blocks: Sequence[tuple[int, ...]]) -> str:
    names = ["(" + ",".join(map(str, block)) + ")" for block in blocks]
    if len(names) < 2:
        return f"CTA {names[0]}" if names else "a CTA"
    return f"{plural(len(names), 'CTA')} (the first is {names[0]})"


def _runs(numbers: Sequence[int]) -> str:
    """`0`, `0 and 1`, `0 to 3 and 7`."""
    described = runs(numbers)
    return " and ".join(filter(None, (", ".join(described[:-1]), described[-1])))
