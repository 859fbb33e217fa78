"""Pictures of an access and its memory: never written, outside, or used outside of its CTA's life."""

from __future__ import annotations

from dataclasses import replace

from consan.reports.counts import plural
from consan.reports.model import Access, Finding
from consan.reports.timeline.draft import Draft
from consan.reports.timeline.picture import CTA, Cell, Lane, Timeline


def uninitialised(finding: Finding) -> Timeline:
    """The write that should come first is missing; a later one is shown."""
    draft, sides = Draft(finding), finding.pair
    draft.open_gap()
    read = draft.executed(sides[0])
    for access in sides[1:]:
        late = draft.executed(access)
        draft.edge(late, read, missing=True)
    return draft.done(_unwritten(finding, sides[0]))


def _unwritten(finding: Finding, access: Access) -> tuple[Cell, ...]:
    """The bytes of (1) within the range that was never written (the union over all reads)."""
    if access.bytes is None or not access.in_shared:
        return ()
    begin, end = access.bytes
    low, high = (finding.buffer.offset, finding.buffer.offset + finding.buffer.bytes) if finding.buffer else access.bytes
    cells = [Cell("hit", f"{begin}..{end - 1}", "(1)")]
    if low < begin:
        cells.insert(0, Cell("unwritten", f"{low}..{begin - 1}"))
    if high > end:
        cells.append(Cell("unwritten", f"{end}..{high - 1}"))
    return tuple(cells)


def outside(finding: Finding) -> Timeline:
    """The memory, its end, and the bytes beyond it."""
    draft, access = Draft(finding), finding.pair[0]
    draft.executed(access)
    strip: tuple[Cell, ...] = ()
    if access.bytes is not None:
        begin, end = access.bytes
        memory = "shared memory of the CTA" if access.in_shared else "allocated memory"
        beyond = f"bytes {begin}..{end - 1}" if access.in_shared else f"{begin:#x}, {plural(end - begin, 'byte')}"
        strip = (Cell("inside", memory), Cell("outside", beyond, "(1)"))
    picture = draft.done(strip)
    caption = f"{picture.caption.rstrip('.')}: {finding.missing}." if finding.missing else picture.caption
    return replace(picture, caption=caption, missing="")


def lifetime(finding: Finding) -> Timeline:
    """An operation that outlives its CTA, or an access to a CTA that has not started or has exited."""
    sides = finding.pair
    if sides[0].asynchronous is None or finding.situation in ("not-started", "after-exit"):
        return _other_cta(finding)
    draft = Draft(finding)
    _, flying = draft.flight(sides[0])
    draft.open_gap()
    exits = draft.event(draft.events[0].lane, "lifetime", "the CTA exits")
    draft.edge(flying, exits, missing=True)
    draft.lands(sides[0], flying, "may end only now")
    return draft.done()


def _other_cta(finding: Finding) -> Timeline:
    """(1), and the start or the exit of the accessed CTA."""
    draft, sides = Draft(finding), finding.pair
    other = Lane(CTA, "the other CTA", "owns the memory")
    mine = draft.thread_lane(sides[0])
    if finding.situation == "after-exit":
        end = draft.event(draft.lane("other", other), "lifetime", "may have exited")
        draft.open_gap()
        access = draft.place_event(sides[0], mine)
        draft.edge(access, end, missing=True)
        return draft.done()
    access = draft.place_event(sides[0], mine)
    draft.open_gap()
    text = "may start only now" if finding.situation == "not-started" else "starts or exits at an unknown time"
    start = draft.event(draft.lane("other", other), "lifetime", text)
    draft.edge(start, access, missing=True)
    return draft.done()
