"""Instructions for whole clusters, CTAs or warps that a repair adds: all threads must pass each of them equally often, in one sequence.

CUDA C++ demands it of `__syncthreads()`, and `bar.sync 0` does not show it: threads that wait at other ones, or have exited, make up the
count. How often, the log says. For the sequence a repair is tried with a barrier of its own for each place, and with the number of all
threads: one that they pass in another sequence ends in a deadlock. The ISA demands the same of the lanes of a warp for `.aligned`.
Lanes that wait at different `bar.warp.sync` meet, too: before one that is added they exchange a value, as they do nowhere else.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt

from consan.checker.questions.changes import Change, EventPlaces
from consan.checker.questions.pieces import WARP_BARRIER, words_of
from consan.checker.repairs.forms import Repair
from consan.instrument import effects
from consan.instrument.effects import LANES

_BARRIERS: Final = 16  # of a CTA (ISA "bar, barrier")
_NAMED: Final = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive|red)[\w.]*\s+(?:%\w+\s*,\s*)?(\d+)")
_ADDED: Final = re.compile(r"\bbar\.sync 0;")
_OF_WARP: Final = words_of(WARP_BARRIER[0])
_OWN_OF_WARP: Final = f"{{ .reg .b32 consan_lanes; match.any.sync.b32 consan_lanes, 0, 0xffffffff; }} {_OF_WARP}"

_OF_CLUSTERS: Final = (effects.ClusterBarrierArrive, effects.ClusterBarrierWait)
_OF_WARPS: Final = (
    *(effects.WarpSync, effects.ProductCommit, effects.ProductWait, effects.ProductFence),
    *(effects.TensorWait, *_OF_CLUSTERS),
)


def are_whole(change: Change, places: EventPlaces, passes: Iterable[Mapping[int, npt.NDArray[np.int64]]]) -> bool:
    """Whether all threads pass what a change adds for all. `passes`: of each history (walks.passes_of)."""
    added = [(spot[0], event) for spot, events in change.items() for event in events if event.site not in _own(places[spot])]
    of_ctas = {number for number, event in added if _is_of_all(event)}
    of_warps = {number for number, event in added if isinstance(event, _OF_WARPS) and not event.site}
    of_clusters = {number for number, event in added if isinstance(event, _OF_CLUSTERS) and not event.site}
    return all(
        _are_equal(each[number], each[number].shape[1] if number in of_ctas else LANES)
        and not (number in of_clusters and np.ptp(each[number]))  # the CTAs of a history are those of clusters
        for each in passes
        for number in of_ctas | of_warps
        if number in each
    )


def for_some_warps(repair: Repair, places: EventPlaces, passes: Iterable[Mapping[int, npt.NDArray[np.int64]]]) -> Repair | None:
    """A repair that adds a barrier at one place, with the count of the warps that pass there; None if that is another one in some CTA."""
    added = {spot[0]: event for spot, events in repair.change.items() for event in events if not event.site}
    counts = {count for each in passes for number in added.keys() & each.keys() for count in _passing(each[number])}
    used = [event for template in places.templates.values() for event in template.events if isinstance(event, effects.CtaBarrier)]
    numbers = set(range(1, _BARRIERS)) - {event.id.number for event in used}
    is_one = len(repair.steps) == 1 and all(map(_is_of_all, added.values())) and all(event.id.is_known for event in used)
    if not (added and is_one and numbers) or len(counts) != 1 or 0 in counts:
        return None
    barrier = effects.CtaBarrier(waits=True, id=effects.WordValue(min(numbers)), threads=effects.WordValue(counts.pop()))
    change = {spot: tuple(event if event.site else barrier for event in events) for spot, events in repair.change.items()}
    return Repair((replace(repair.steps[0], instruction=words_of(barrier)),), change)


def _passing(passes: npt.NDArray[np.int64]) -> Iterator[int]:
    """The threads of each CTA that pass at all; 0 if they are not whole warps, or do not pass equally often."""
    for row in passes[passes.any(axis=1)]:
        warps = row.reshape(-1, LANES) if not row.size % LANES else row[None]
        inside = warps[warps.any(axis=1)]
        yield inside.size if (inside == inside[0, 0]).all() and not inside.size % LANES else 0


def _are_equal(passes: npt.NDArray[np.int64], size: int) -> bool:
    """Whether threads that come one after the other pass equally often, `size` at a time."""
    first = np.arange(passes.shape[1]) // size * size
    return bool((passes == passes[:, first]).all())


def own_barriers(change: Change, places: EventPlaces, block: tuple[int, int, int]) -> Change:
    """The change with a barrier of its own at each place to which it brings one of all threads."""
    used = {event.id.number for template in places.templates.values() for event in template.events if isinstance(event, effects.CtaBarrier)}
    numbers, count = _free(used), _threads(block)
    return {
        spot: tuple(
            event.changed(id=effects.WordValue(next(numbers)), threads=effects.WordValue(count))
            if _is_of_all(event) and event.site not in _own(places[spot])
            else event
            for event in events
        )
        for spot, events in sorted(change.items())
    }


def own_barriers_in_text(edits: Iterable[tuple[int, int, str]], ptx: str, block: tuple[int, int, int]) -> tuple[tuple[int, int, str], ...]:
    """The same for edits of a text. A barrier that replaces one keeps its number."""
    barriers = barriers_for(ptx, block)

    def numbered(start: int, end: int, text: str) -> str:
        whole = text.replace(_OF_WARP, _OWN_OF_WARP) if start == end else text
        return _ADDED.sub(lambda _: f"{next(barriers) if start == end else f'bar.sync 0, {_threads(block)}'};", whole)

    return tuple((start, end, numbered(start, end, text)) for start, end, text in edits)


def own_barrier(instruction: str, added: bool, barriers: Iterator[str]) -> str:
    """The same for an instruction of a repair of the source. `barriers`: those of `barriers_for`."""
    if instruction == "bar.sync 0":
        return next(barriers)
    return _OWN_OF_WARP if added and instruction == _OF_WARP else instruction


def barriers_for(ptx: str, block: tuple[int, int, int]) -> Iterator[str]:
    """Barriers of all threads that a kernel does not use."""
    return (f"bar.sync {number}, {_threads(block)}" for number in _free({int(number) for number in _NAMED.findall(ptx)}))


def _own(event: effects.Effect) -> tuple[int, ...]:
    """The site of a barrier that may be altered in its place; what is added has none."""
    return (event.site,) if isinstance(event, effects.CtaBarrier) and event.site else ()


def _is_of_all(event: effects.Effect) -> TypeGuard[effects.CtaBarrier]:
    return isinstance(event, effects.CtaBarrier) and event.waits and event.threads == effects.ALL_THREADS and event.id.is_known


def _free(used: set[int]) -> Iterator[int]:
    """Barriers that the kernel does not use; all in turn, if that is every one."""
    return itertools.cycle([number for number in reversed(range(1, _BARRIERS)) if number not in used] or range(1, _BARRIERS))


def _threads(block: tuple[int, int, int]) -> int:
    return -(-math.prod(block) // LANES) * LANES
