"""Accesses of adjacent bytes by one piece of straight code, as one access: a loop that the compiler has unrolled makes few pairs then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from consan.prove.solver import z3
from consan.prove.step import ThreadAccess


def united(accesses: Sequence[ThreadAccess]) -> list[ThreadAccess]:
    """The accesses, those of adjacent bytes of one node as one, of the first one's line.

    A node ends where a barrier orders them; a strong access inside may be the write of a word that orders what comes before it alone.
    """
    found, last, strong = list[ThreadAccess](), dict[tuple[object, ...], list[ThreadAccess]](), Counter[int]()
    for access in accesses:
        strong[access.place[0]] += bool(access.strong)
        key = _key(access)
        if key is None:
            found.append(access)
        else:
            last.setdefault((strong[access.place[0]], *key), []).append(access)
    return [*found, *(run for group in last.values() for run in _runs(group))]


def _key(access: ThreadAccess) -> tuple[object, ...] | None:
    """The facts that accesses of one run share; None: an access is not part of any."""
    if access.base is None or access.strong or access.own or access.is_copy or access.is_of_mbarrier:
        return None
    return access.place[0], access.base, access.space, access.writes, access.path.get_id()


def _runs(group: list[ThreadAccess]) -> Iterator[ThreadAccess]:
    """Runs of the accesses of one group, whose offsets differ by numbers."""
    first, scattered, placed = group[0], list[ThreadAccess](), list[tuple[int, ThreadAccess]]()
    for access in group:
        distance = z3.simplify(access.offset.term - first.offset.term)
        if z3.is_int_value(distance):
            placed.append((distance.as_long(), access))
        else:
            scattered.append(access)
    placed.sort(key=lambda each: each[0])
    begin, run = placed[0]
    end = begin + run.nbytes
    for place, access in placed[1:]:
        if place <= end:
            end = max(end, place + access.nbytes)
            run = replace(run, nbytes=end - begin, element=0)
        else:
            yield run
            begin, run, end = place, access, place + access.nbytes
    yield run
    if scattered:
        yield from _runs(scattered)
