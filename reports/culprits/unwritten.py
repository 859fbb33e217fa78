"""Adds facts from the kernel's text to an uninitialised read: the stores to its variable, or that there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from consan.instrument.relations import Stores, SyncPoint
from consan.instrument.sites import Place
from consan.reports.catalogue.situations import UNWRITTEN
from consan.reports.culprits.cases import access_of, is_proxy_fence, is_wait, last_of, named
from consan.reports.model import Access, Finding
from consan.reports.source.names import name_without_element
from consan.reports.source.places import culprit_at
from consan.reports.words.wording import place, place_of

_STORES: Final = 3  # stores that a sentence names


def is_array(name: str) -> bool:
    """Whether a name is that of a variable or of elements of it, not of a member, of plain bytes or of dynamic memory."""
    return bool(name) and "." not in name.replace("..", "") and " " not in name


def published_at(before: Sequence[SyncPoint], words: Mapping[str, str]) -> str:
    """`the fence.proxy.async at k.cu:5 and the __syncthreads() at k.cu:6`: what a write has to come before, to be seen by a read.

    `before`: the synchronising instructions before the read. Empty if there is no barrier.
    """
    barrier = last_of(before, lambda point: point.always and is_wait(point) and point.count is None)
    if barrier is None:
        return ""
    fence = last_of(before[: before.index(barrier)], lambda point: point.always and is_proxy_fence(point))
    return " and ".join(f"the {named(point, words)} at {place(access_of(point))}" for point in (fence, barrier) if point is not None)


def with_stores(finding: Finding, found: Stores | None, published: str = "", barrier: str = "a barrier") -> Finding:
    """The finding with the first store to its variable, whose range may be too small, or with the fact that there is none.

    The access names some of the bytes that nothing has written, not all. `published`: what `published_at` gives. `barrier`: that of
    the CTA in the words of the framework.
    """
    if found is None:
        return finding
    reader, copied = finding.accesses[0], _copied(finding, found)
    variable, at = name_without_element(reader.name), place(reader)
    others = replace(found, places=tuple(each for each in found.places if not _is(reader, each)))
    if found.places and not others.places:
        first = f"store the first value of {variable} (0 for a sum) in one thread"
        after = f"before {published}" if published else f"then put {barrier}, before {at}"
        message = f"the {reader.role} at {at} changes {reader.name}, and nothing has written a first value"
        return replace(finding, message=message, fix=f"{first}, {after}")
    found = others
    reads = f"the {reader.role} at {at} {f'copies {copied:,} bytes of {variable}' if copied else f'reads {reader.name}'}"
    if not found.places:
        message = f"{reads}, and no instruction of this kernel writes {variable}"
        fix = f"write {variable} before {published or at}, or let {at} read another array"
        return replace(finding, message=message, fix=fix, cause=UNWRITTEN)
    stores = f"{variable} is written at {_listed(found)}"
    if copied:
        message = f"{reads}, and nothing in this CTA has written some of them, such as {reader.name}; {stores}"
        fix = f"let {_listed(found)} write all {copied:,} bytes that {at} copies (a tail: with 0), or copy only what is written"
    else:
        message = f"{finding.message}; {stores}"
        fix = (
            f"let {_listed(found)}, or a statement beside it, also write the rest of what {at} reads, such as {reader.name} (a tail: with"
            f" 0; a halo: with the neighbour's elements), or let {at} read less"
        )
    store = culprit_at(found.places[0])
    return replace(finding, accesses=(*finding.accesses, store), message=message, fix=fix)


def _is(reader: Access, store: Place) -> bool:
    """Whether a store is the reader itself, an atomic operation, or a copy of it in an unrolled loop."""
    return "atomic" in reader.role and culprit_at(store).site[:3] == reader.site[:3]


def _copied(finding: Finding, found: Stores) -> int:
    """The bytes that a bulk copy reads in all; 0 for other reads, or if that is not known."""
    action = finding.accesses[0].asynchronous
    return found.bytes if action is not None and action.kind.startswith("bulk") else 0


def _listed(found: Stores) -> str:
    places = " and ".join(dict.fromkeys(place_of(each) for each in found.places[:_STORES]))
    return places + (f" and at {len(found.places) - _STORES} more places" if len(found.places) > _STORES else "")
