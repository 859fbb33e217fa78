"""What a plain kernel did on the virtual machine, as a list of events.

`recording()` replaces, while it is open, the few places of the virtual machine that every access, barrier and asynchronous
operation passes: so the machine itself knows nothing of tracing. A module must be loaded and run inside of the same block (steps are
decoded once). Nothing of the instrumentation takes part.

Places in shared memory are (CTA of the wave) << 20 | offset behind the reserved KiB; lanes are numbered as in wave.py.

In a cluster the place of an access is in the CTA that its address names. A multicast copy is an operation for each CTA that it goes to.

Beside the events it keeps the way of each lane: the blocks that it ran, and the points that it came to (oracle_lanes.py).

In global memory, strong accesses are recorded, since they synchronise. `recording(global_memory=True)` records all of them, as events
"global" with addresses, and where copies read and write it. Not recorded: registers, tensor maps in global memory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from oracle_lanes import ALL, Ways, came_to, is_point, mask_operand

from consan.backends.cpu.decode.operands import DecodeContext
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.engine import code, control, scheduler
from consan.backends.cpu.semantics import access, cluster, dispatch as decode, mbarrier_steps, tensor, wgmma
from consan.backends.cpu.state import copies, mbarriers
from consan.backends.cpu.state.memory import GLOBAL_BASE, LOCAL_WINDOW, RANK_SHIFT, RESERVED_SHARED, SHARED_WINDOW, WINDOW_SIZE
from consan.backends.cpu.state.registers import WORD_DTYPES
from consan.backends.cpu.state.wave import WARP, Wave
from consan.instrument.isa import lookup
from consan.instrument.ptx.operands import flatten

Array = npt.NDArray[Any]
Ranges = list[tuple[int, int]]
CTA_SHIFT = 20
ELSEWHERE = -1  # an address that is not in shared memory
RANKED = frozenset(("shared::cluster", "generic"))  # spaces whose addresses name the CTA
GLOBAL_EVENTS = frozenset(("global", "grid-wait"))  # only with `global_memory`


@dataclass
class Event:
    """Something that the threads `lanes` did at once; `data` depends on the kind."""

    kind: str
    line: int
    opcode: str
    lanes: Array
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Footprint:
    """What a lane's bulk operation writes and reads of shared memory, by place, and of global memory; and how many bytes it has."""

    nbytes: int
    writes: Ranges = field(default_factory=list)
    reads: Ranges = field(default_factory=list)
    global_writes: Ranges = field(default_factory=list)
    global_reads: Ranges = field(default_factory=list)
    element: int = 0  # bytes of an element of a reduction


@dataclass(frozen=True)
class Launch:
    """Which wave a launch begins with, which launches it follows in a stream or by an event, and whether as a programmatic dependent."""

    wave: int
    after: tuple[int, ...] = ()
    programmatic: bool = False


@dataclass
class Trace:
    """The events of each wave of CTAs, in the order in which they happened."""

    waves: list[tuple[Wave, list[Event]]] = field(default_factory=list)
    ways: list[Ways] = field(default_factory=list)  # of the lanes of each wave
    current: tuple[int, str] = (0, "")  # line and opcode of the step that runs
    footprints: dict[int, Footprint] = field(default_factory=dict)  # of the bulk copies that the step issues, by lane
    stores: dict[str, Any] | None = None  # what all asynchronous stores that the step issues have in common
    serial: int = 0
    launches: list[Launch] = field(default_factory=list)  # empty: one
    ranks: int = 1  # devices that have a part of the CTAs each
    global_memory: bool = False  # whether all accesses of global memory are recorded

    def emit(self, kind: str, lanes: Array, /, place: tuple[int, str] | None = None, **data: Any) -> None:
        """Add an event of the step that runs, or of `place`."""
        line, opcode = place or self.current
        self.waves[-1][1].append(Event(kind, line, opcode, np.array(lanes), data))


def cut(event: Event, chosen: Array) -> Event:
    """The part of an event that some of its lanes have."""
    if chosen.all():
        return event
    picked = chosen.nonzero()[0].tolist()

    def part(name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value[chosen]
        if name == "values" and value is not None:
            return [value[k] for k in picked]
        if name == "ranges" and event.kind == "product":
            return [value[k // WARP] for k in picked if k % WARP == 0]
        return value

    return Event(event.kind, event.line, event.opcode, event.lanes[chosen], {k: part(k, v) for k, v in event.data.items()})


# Operands ----------------------------------------------------------------------------------------------------------------


def per_lane(source: Array, lanes: Array) -> Array:
    """A source operand of some lanes."""
    return source[lanes] if source.ndim else np.broadcast_to(source, len(lanes))


def addresses(context: DecodeContext, operand: Any, space: str) -> Callable[[Array], tuple[Array, Array]]:
    """For some lanes: the places in shared memory that an operand names (ELSEWHERE where it does not), and the addresses."""
    place, wave = context.place(operand), context.wave
    ranked = space in RANKED

    def find(lanes: Array) -> tuple[Array, Array]:
        base = np.zeros(len(lanes), np.int64) if place.base is None else per_lane(place.base, lanes).astype(np.int64)
        given = base + place.offset
        if space == "generic":
            inside = given - SHARED_WINDOW
            shared = (inside >= 0) & (inside < WINDOW_SIZE)
        else:
            inside, shared = given, np.full(len(lanes), space.startswith("shared"))
        offset = (inside & ((1 << RANK_SHIFT) - 1)) - RESERVED_SHARED
        cta = wave.cta_of[lanes] + ((inside >> RANK_SHIFT) - wave.rank[lanes] if ranked else 0)
        return np.where(shared, (cta << CTA_SHIFT) | offset, ELSEWHERE), given

    return find


def places_of_units(wave: Wave, items: Array, nbytes: int) -> Array:
    """Items of the arena of `nbytes` bytes as places."""
    offset = items.astype(np.int64) * nbytes - wave.windows.shared
    return (offset // wave.windows.stride) << CTA_SHIFT | offset % wave.windows.stride


def place_of_unit(wave: Wave, item: int, nbytes: int) -> int:
    """The same for one item."""
    return int(places_of_units(wave, np.array([item]), nbytes)[0])


# Steps -------------------------------------------------------------------------------------------------------------------


def _around(
    trace: Trace, context: DecodeContext, step: Step, before: Callable[[Array], None], after: Callable[[Array], None] | None = None
) -> Step:
    place, ids = (context.instruction.line, context.instruction.opcode), context.wave.ids

    def part(sel: Any) -> None:
        trace.current = place
        before(ids[sel])
        step.part(sel)
        if after is not None:
            after(ids[sel])

    return selective(part)


def _stored(context: DecodeContext, operand: Any) -> Callable[[Array], list[bytes]] | None:
    """The bytes that each lane stores."""
    word = context.instruction.parts[-1]
    if word not in WORD_DTYPES or word == "b128":
        return None
    raw = f"b{8 * WORD_DTYPES[word].itemsize}"
    sources = [context.source(s, word).view(WORD_DTYPES[raw]) if s.text[0].isdigit() else context.source(s, raw) for s in flatten(operand)]

    def values(lanes: Array) -> list[bytes]:
        rows = np.stack([per_lane(source, lanes) for source in sources], axis=1)
        return [row.tobytes() for row in rows]

    return values


def _used_elements(instruction: Any) -> list[int] | None:
    """Which elements of a vector something reads, where that is not all or none: the others are as if they were not loaded."""
    block = instruction.scope
    while block.parent is not None:
        block = block.parent
    targets = flatten(instruction.operands[0])
    used = [i for i, one in enumerate(targets) if one.text != "_" and len(re.findall(re.escape(one.text) + r"(?![\w$])", block.text)) > 1]
    return used if 0 < len(used) < len(targets) else None


_LANE = np.arange(WARP)


def _fragments(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """ldmatrix and stmatrix of 8x8 matrices of 16-bit elements: each lane accesses the elements that its registers have (9.7.14.5.15, 16).

    In a matrix, a lane has two elements of row lane / 4, from column lane % 4 * 2 on; of the transposed matrix with `.trans`.
    """
    instruction, parts = context.instruction, context.instruction.parts
    row = lookup(parts)
    (one,) = row.accesses(instruction)
    find = addresses(context, one.address, one.space if one.space != "shared" else _shared_space(parts))
    matrices, wave = row.address_lanes(parts) // 8, context.wave
    turned = "trans" in parts
    form = {"access": one.access, "sem": one.sem, "scope": one.scope, "strong": False, "element": 2, "values": None, "atomic": False}

    def before(lanes: Array) -> None:
        for first in lanes[wave.warps.lane[lanes] == 0]:
            warp = first + _LANE
            if not np.isin(warp, lanes).all():
                continue  # undefined: the machine ends the launch
            places, given = find(warp)
            for matrix in range(matrices):
                for half in range(2) if turned else (0,):
                    rows = 8 * matrix + (_LANE % 4 * 2 + half if turned else _LANE // 4)
                    column = _LANE // 4 if turned else _LANE % 4 * 2
                    to = places[rows] + 2 * column
                    trace.emit("access", warp, places=to, addresses=given[rows] + 2 * column, nbytes=2 if turned else 4, **form)

    return _around(trace, context, step, before)


def _data_access(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """ld, st, atom, red, ldmatrix, stmatrix."""
    if context.instruction.parts[0] in ("ldmatrix", "stmatrix"):
        return _fragments(trace, context, step)
    instruction, parts = context.instruction, context.instruction.parts
    if "async" in parts:
        return _async_store(trace, context, step)
    row = lookup(parts)
    found = [a for a in row.accesses(instruction) if a.space in ("shared", "generic", "global")] if row is not None else []
    if not found:
        return step
    (one,) = found
    find = addresses(context, one.address, one.space if one.space != "shared" else _shared_space(parts))
    nbytes = one.total_bytes
    values = _stored(context, instruction.operands[1]) if parts[0] == "st" else None
    element = one.width_bytes if parts[0] in ("ld", "st") else nbytes
    used = _used_elements(instruction) if parts[0] == "ld" and one.space == "shared" and not one.is_strong else None
    pieces = [(0, nbytes)] if used is None else [(index * element, element) for index in used]
    scalar = one.width_bytes // 2 if parts[-1].endswith("x2") else one.width_bytes  # of a packed type (8.2.5)
    form = {"access": one.access, "sem": one.sem, "scope": one.scope, "strong": one.is_strong, "element": scalar, "nc": "nc" in parts}

    def before(lanes: Array) -> None:
        places, given = find(lanes)
        if one.is_strong or (places != ELSEWHERE).any():
            for offset, size in pieces:
                trace.emit(
                    "access", lanes, places=np.where(places == ELSEWHERE, places, places + offset), addresses=given + offset, nbytes=size,
                    access=one.access, sem=one.sem, scope=one.scope, strong=one.is_strong, element=element,
                    values=values(lanes) if values else None, atomic=one.access == "rmw",
                )  # fmt: skip
        _emit_global(trace, lanes, places, given, nbytes, values, form)

    return _around(trace, context, step, before)


def _emit_global(trace: Trace, lanes: Array, places: Array, given: Array, nbytes: int, values: Any, form: dict[str, Any]) -> None:
    """The part of an access that is in global memory."""
    chosen = (places == ELSEWHERE) & ((given < LOCAL_WINDOW) | (given >= LOCAL_WINDOW + WINDOW_SIZE))
    if trace.global_memory and chosen.any():
        stored = values(lanes[chosen]) if values else None
        trace.emit("global", lanes[chosen], addresses=given[chosen], nbytes=nbytes, values=stored, **form)


def _async_store(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """st.async and red.async that signal an mbarrier: the queue's `issue` makes the event. The others are for global memory."""
    parts, operands = context.instruction.parts, context.instruction.operands
    if "mbarrier::complete_tx::bytes" not in parts:
        return step
    find, reduces = addresses(context, operands[0], _shared_space(parts)), parts[0] == "red"
    nbytes = WORD_DTYPES[parts[-1]].itemsize * len(flatten(operands[1]))

    def before(lanes: Array) -> None:
        places = np.full(context.wave.lanes, ELSEWHERE)
        places[lanes] = find(lanes)[0]
        trace.stores = {"places": places, "nbytes": nbytes, "strong": reduces, "access": "rmw" if reduces else "write"}

    def after(lanes: Array) -> None:
        trace.stores = None

    return _around(trace, context, step, before, after)


def _fence(trace: Trace, context: DecodeContext, step: Step) -> Step:
    return _around(trace, context, step, lambda lanes: trace.emit("fence", lanes, parts=context.instruction.parts))


def _group(trace: Trace, context: DecodeContext, step: Step, family: str) -> Step:
    """commit_group, wait_group and wait_all."""
    parts, operands = context.instruction.parts, context.instruction.operands
    if "commit_group" in parts:
        return _around(trace, context, step, lambda lanes: trace.emit("commit", lanes, family=family))
    pending = int(getattr(operands[0], "value", 0)) if operands else None
    return _around(trace, context, step, lambda lanes: trace.emit("wait", lanes, family=family, pending=pending, read="read" in parts))


def _copy(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """Non-bulk cp.async."""
    target, source, size = context.instruction.operands[:3]
    find, nbytes = addresses(context, target, "shared"), int(getattr(size, "value", 0))
    find_source = addresses(context, source, "global")
    return _around(
        trace, context, step,
        lambda lanes: trace.emit("copy", lanes, places=find(lanes)[0], nbytes=nbytes, sources=find_source(lanes)[1]),
    )  # fmt: skip


def _bulk(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """cp.async.bulk and its reductions: note the footprint in shared memory; the queue's `issue` makes the event."""
    words = context.instruction.parts[context.instruction.parts.index("bulk") + 1 :]
    if words[0] in ("commit_group", "wait_group"):
        return _group(trace, context, step, "bulk")
    if words[0] == "prefetch":
        return step
    target, source, size = context.instruction.operands[:3]
    sides = {"writes": (target, words[0]), "reads": (source, words[1])}
    finders = {name: addresses(context, operand, space) for name, (operand, space) in sides.items() if space != "global"}
    far = {f"global_{name}": addresses(context, operand, space) for name, (operand, space) in sides.items() if space == "global"}
    sizes = context.source(size, "u32")
    element = WORD_DTYPES[words[-1]].itemsize if "reduce" in context.instruction.parts else 0

    def before(lanes: Array) -> None:
        counts = [int(count) for count in per_lane(sizes, lanes)]
        trace.footprints = {lane: Footprint(count, element=element) for lane, count in zip(lanes.tolist(), counts, strict=True)}
        for name, find in finders.items():
            for lane, start, count in zip(lanes.tolist(), find(lanes)[0].tolist(), counts, strict=True):
                getattr(trace.footprints[lane], name).append((start, start + count))
        for name, find in far.items():
            for lane, start, count in zip(lanes.tolist(), find(lanes)[1].tolist(), counts, strict=True):
                getattr(trace.footprints[lane], name).append((start, start + count))

    return _around(trace, context, step, before)


def _tensor(trace: Trace, context: DecodeContext, step: Step) -> Step:
    return _around(trace, context, step, lambda lanes: None)


def _cp(trace: Trace, context: DecodeContext, step: Step) -> Step:
    parts = context.instruction.parts
    if "tensor" in parts:
        return step if "prefetch" in parts else _tensor(trace, context, step)
    if "bulk" in parts:
        return _bulk(trace, context, step)
    if parts[1:4] == ("async", "mbarrier", "arrive"):
        return _arrive_on(trace, context, step)
    return (
        _copy(trace, context, step)
        if context.instruction.operands and len(context.instruction.operands) > 2
        else _group(trace, context, step, "async")
    )


def _shared_space(parts: tuple[str, ...]) -> str:
    """The state space of an operand in shared memory, as the opcode has it."""
    return next((part for part in parts if access.SPACES.get(part) == "shared"), "generic")


def is_narrow(words: Iterable[str]) -> bool:
    """Whether the scope of an mbarrier operation is the CTA, which is the default."""
    return {"cluster", "gpu", "sys"}.isdisjoint(words)


def _arrive_on(trace: Trace, context: DecodeContext, step: Step) -> Step:
    find = addresses(context, context.instruction.operands[0], _shared_space(context.instruction.parts))
    noinc = "noinc" in context.instruction.parts
    return _around(trace, context, step, lambda lanes: trace.emit("arrive-on", lanes, places=find(lanes)[0], noinc=noinc))


def _mbarrier(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """mbarrier instructions but try_wait."""
    parts, operands = context.instruction.parts, list(context.instruction.operands)
    action = parts[1]
    if action == "pending_count":
        return step
    target = operands.pop(0) if action in ("arrive", "arrive_drop", "test_wait") else None
    find = addresses(context, operands[0], _shared_space(parts))
    given = (
        context.source(operands[1], "b64" if action == "test_wait" and "parity" not in parts else "u32")
        if len(operands) > 1
        else np.array(1)
    )

    def before(lanes: Array) -> None:
        trace.emit("mbarrier", lanes, places=find(lanes)[0], action=action, given=per_lane(given, lanes).astype(np.int64), parts=parts)

    if action != "test_wait":
        return _around(trace, context, step, before)
    result = context.target(target, "pred").array

    def after(lanes: Array) -> None:
        passed = lanes[result[lanes]] if result is not None else lanes[:0]
        if len(passed):
            trace.emit("waited", passed, places=find(passed)[0], relaxed="relaxed" in parts, narrow=is_narrow(parts))

    return _around(trace, context, step, before, after)


MAP_BYTES = 128
_WHOLE_WARP = 0xFFFFFFFF


def _tensormap(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """tensormap.replace writes the whole map; cp_fenceproxy reads it, and its warp waits for each other before and after."""
    parts, operands = context.instruction.parts, context.instruction.operands
    copies = parts[1] == "cp_fenceproxy"
    find = addresses(context, operands[int(copies)], "global" if "global" in parts and not copies else _shared_space(parts))

    def meet(lanes: Array) -> None:
        if copies:
            trace.emit("warp-barrier", lanes, members=np.full(len(lanes), _WHOLE_WARP))

    def before(lanes: Array) -> None:
        meet(lanes)
        places, given = find(lanes)
        if (places != ELSEWHERE).any():
            trace.emit(
                "access", lanes, places=places, addresses=given, nbytes=MAP_BYTES, access="read" if copies else "write", sem="weak",
                scope="", strong=False, element=MAP_BYTES, values=None, atomic=False,
            )  # fmt: skip

    return _around(trace, context, step, before, meet)


def _cluster_arrive(trace: Trace, context: DecodeContext, step: Step) -> Step:
    relaxed = "relaxed" in context.instruction.parts
    return _around(trace, context, step, lambda lanes: trace.emit("cluster-arrive", lanes, relaxed=relaxed))


def _griddepcontrol(trace: Trace, context: DecodeContext, step: Step) -> Step:
    if not trace.global_memory or "wait" not in context.instruction.parts:
        return step
    return _around(trace, context, step, lambda lanes: trace.emit("grid-wait", lanes))


def _wgmma(trace: Trace, context: DecodeContext, step: Step) -> Step:
    if context.instruction.parts[1] in ("commit_group", "wait_group"):
        return _group(trace, context, step, "wgmma")
    return _around(trace, context, step, lambda lanes: None)


_DATA = dict.fromkeys(("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix"), _data_access)
_WRAPPERS: dict[str, Callable[[Trace, DecodeContext, Step], Step]] = {
    **_DATA, "fence": _fence, "membar": _fence, "cp": _cp, "mbarrier": _mbarrier, "wgmma": _wgmma,
    "tensormap": _tensormap, "barrier": _cluster_arrive, "griddepcontrol": _griddepcontrol,
}  # fmt: skip


# Ends of blocks ------------------------------------------------------------------------------------------------------------


class _TracedEnd:
    """A barrier or a try_wait, with an event before it."""

    def __init__(self, trace: Trace, context: DecodeContext, inner: Any) -> None:
        self.trace, self.inner = trace, inner
        self.place, self.parts = (context.instruction.line, context.instruction.opcode), context.instruction.parts
        self.note = _noting(trace, context) if is_point(context.instruction) and context.function.code.is_entry else None
        self.find = None
        if isinstance(inner, mbarrier_steps.TryWait):
            self.find = addresses(context, context.instruction.operands[1], _shared_space(context.instruction.parts))

    def __call__(self, scheduler: Any, group: Any) -> Any:
        lanes = np.array(group.lanes)
        self.trace.current = self.place
        if self.note is not None:
            self.note(lanes)
        if isinstance(self.inner, control.Barrier):
            ids, counts = self.inner._of(self.inner.id, group, 0), self.inner._of(self.inner.count, group, -1)
            self.trace.emit("barrier", lanes, ids=ids, counts=counts, waits=self.inner.waits)
        elif isinstance(self.inner, control.WarpBarrier):
            members = per_lane(self.inner.members, lanes)
            self.trace.emit("warp-barrier", lanes, members=np.array(members))
        elif isinstance(self.inner, cluster.ClusterWait):
            self.trace.emit("cluster-wait", lanes)
        elif self.find is not None:
            self._try_wait(lanes)
        return self.inner(scheduler, group)

    def _try_wait(self, lanes: Array) -> None:
        assert self.find is not None
        places = self.find(lanes)[0]
        self.trace.emit("mbarrier", lanes, places=places, action="try_wait", given=np.zeros(len(lanes), np.int64), parts=self.parts)
        units = mbarrier_steps.units_of(self.inner.found, lanes)
        passed = np.asarray(self.inner.test(units, lanes))
        if passed.any():
            relaxed, narrow = "relaxed" in self.parts, is_narrow(self.parts)
            self.trace.emit("waited", lanes[passed], places=places[passed], relaxed=relaxed, narrow=narrow)


# The places that are replaced ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def recording(*, global_memory: bool = False) -> Iterator[Trace]:
    """Record everything that modules loaded inside of the block do."""
    trace = Trace(global_memory=global_memory)
    with contextlib.ExitStack() as stack:
        for target, name, replacement in _replacements(trace):
            stack.enter_context(mock.patch.object(target, name, replacement))
        stack.enter_context(mock.patch.dict(control.ENDS, _ends(trace)))
        yield trace


def _ends(trace: Trace) -> dict[str, Any]:
    def wrap(original: Any) -> Any:
        return lambda context, following: _TracedEnd(trace, context, original(context, following))

    return {name: wrap(control.ENDS[name]) for name in ("barrier", "warp-barrier", "cluster-barrier", "mbarrier")}


def _replacements(trace: Trace) -> Iterator[tuple[Any, str, Any]]:
    yield decode, "_unguarded", _traced_steps(trace, decode._unguarded)
    yield code.Plan, "start_wave", _traced_start(trace, code.Plan.start_wave)
    for name in ("plain_block", "count_block"):
        yield scheduler.Scheduler, name, _traced_run(trace, getattr(scheduler.Scheduler, name))
    yield scheduler.Scheduler, "_converge", _traced_converge(trace, scheduler.Scheduler._converge)
    yield scheduler.Scheduler, "exit", _traced_exit(trace, scheduler.Scheduler.exit)
    yield copies.AsyncCopies, "issue", _traced_issue(trace, copies.AsyncCopies.issue)
    yield mbarriers.MBarriers, "_release", _traced_release(trace, mbarriers.MBarriers._release)
    yield mbarrier_steps.ArriveOn, "land", _traced_arrival(trace, mbarrier_steps.ArriveOn.land)
    yield tensor._Copies, "_chunks", _traced_chunks(trace, tensor._Copies._chunks)


def _traced_steps(trace: Trace, original: Any) -> Any:
    def unguarded(context: DecodeContext) -> Step:
        step: Step = original(context)
        wrapper = _WRAPPERS.get(context.instruction.parts[0])
        if wrapper is not None and (context.instruction.parts[0], context.instruction.parts[-1]) != ("ld", "param"):
            step = wrapper(trace, context, step)
        return _noted(trace, context, step) if is_point(context.instruction) and context.function.code.is_entry else step

    return unguarded


def _noted(trace: Trace, context: DecodeContext, step: Step) -> Step:
    """A warp-synchronous instruction that does not end its block."""
    note = _noting(trace, context)
    return _around(trace, context, step, note)


def _noting(trace: Trace, context: DecodeContext) -> Callable[[Array], None]:
    """What notes that lanes have come to a point."""
    instruction, operand = context.instruction, mask_operand(context.instruction)
    masks = np.array(ALL) if operand is None else context.source(operand, "u32")

    def note(lanes: Array) -> None:
        points = trace.ways[-1].points
        for lane, mask in zip(lanes.tolist(), per_lane(masks, lanes).tolist(), strict=True):
            if (came := came_to(instruction, mask)) is not None:
                points.setdefault(lane, []).append(came)

    return note


def _traced_run(trace: Trace, original: Any) -> Any:
    def run(self: Any, group: Any, block: Any) -> None:
        ways = trace.ways[-1]
        if block.function.code.is_entry:
            ways.code = block.function.code
            for lane in group.lanes.tolist():
                ways.ran.setdefault(lane, set()).add(block.code.index)
        original(self, group, block)

    return run


def _traced_converge(trace: Trace, original: Any) -> Any:
    def converge(self: Any, group: Any, block: Any, collective: Any) -> bool:
        line = block.function.code.instructions[block.code.start].line
        given = per_lane(collective.members, group.lanes).tolist()
        trace.ways[-1].masks.update({(lane, line): mask for lane, mask in zip(group.lanes.tolist(), given, strict=True)})
        went_on: bool = original(self, group, block, collective)
        return went_on

    return converge


def _traced_start(trace: Trace, original: Any) -> Any:
    def start_wave(plan: Any, rng: Any) -> None:
        trace.waves.append((plan.wave, []))
        trace.ways.append(Ways())
        original(plan, rng)

    return start_wave


def _traced_exit(trace: Trace, original: Any) -> Any:
    def leave(self: Any, group: Any) -> None:
        trace.emit("exit", group.lanes, place=(0, "exit"))
        trace.ways[-1].ended.update(group.lanes.tolist())
        original(self, group)

    return leave


def _traced_chunks(trace: Trace, original: Any) -> Any:
    def chunks(self: Any, lanes: Array, items: Any) -> Any:
        found = original(self, lanes, items)
        for lane, item, chunk in zip(lanes.tolist(), items, found, strict=True):
            inside = item.inside.nonzero()[0] if not self.loads else np.arange(len(item.inside))
            whole = np.unique(chunk[inside * item.info.element_bytes // 16])  # a store reads what is inside of the tensor only
            ranges = _merged(places_of_units(self.wave, whole, 16), 16)
            far = _merged(GLOBAL_BASE + np.unique(item.index) * item.info.element_bytes, item.info.element_bytes) if len(item.index) else []
            sides = {"writes": ranges, "global_reads": far} if self.loads else {"reads": ranges, "global_writes": far}
            trace.footprints[lane] = Footprint(item.nbytes, element=item.info.element_bytes, **sides)
        return found

    return chunks


def _traced_issue(trace: Trace, original: Any) -> Any:
    def issue(self: Any, operation: Any) -> None:
        if isinstance(operation, wgmma.Product):
            _emit_product(trace, self.wave, operation)
        elif isinstance(operation, copies.BulkOperation) and trace.stores is not None:
            data = {**trace.stores, "places": trace.stores["places"][operation.lanes]}
            _emit_signalled(trace, self.wave, operation, "async-store", data["nbytes"] * len(operation.lanes), **data)
        elif isinstance(operation, copies.BulkOperation) and int(operation.lanes[0]) in trace.footprints:
            _emit_bulk(trace, self.wave, operation)
        elif isinstance(operation, mbarrier_steps.ArriveOn):
            operation.traced = trace.current  # type: ignore[attr-defined]
        original(self, operation)

    return issue


def _emit_bulk(trace: Trace, wave: Wave, operation: Any) -> None:
    found = trace.footprints[int(operation.lanes[0])]
    writes, receiver = found.writes, operation.receiver
    if receiver is not None:  # a multicast goes to the same place in other CTAs
        shift = (receiver - (writes[0][0] >> CTA_SHIFT)) << CTA_SHIFT
        writes = [(start + shift, end + shift) for start, end in writes]
    far = {"global_writes": found.global_writes, "global_reads": found.global_reads, "element": found.element}
    _emit_signalled(trace, wave, operation, "bulk", found.nbytes, writes=writes, reads=found.reads, **far)


def _emit_signalled(trace: Trace, wave: Wave, operation: Any, kind: str, total: int, **data: Any) -> None:
    """An operation, and its completion where that is to be seen at an mbarrier."""
    trace.serial += 1
    serial, place, lanes = trace.serial, trace.current, operation.lanes
    unit = next((place_of_unit(wave, unit, 8) for unit in operation.signals), None)
    trace.emit(kind, lanes, serial=serial, unit=unit, **data)
    complete = operation.complete
    if complete is not None:

        def completed() -> None:
            trace.emit("complete", lanes, place=place, serial=serial, unit=unit, total=total)
            complete()

        operation.complete = completed


def _emit_product(trace: Trace, wave: Wave, product: Any) -> None:
    """The operands of each warp of a wgmma, as ranges of places."""
    ranges: list[Ranges] = []
    for warp in range(len(product.lanes) // WARP):
        items = [np.asarray(product.b[product.which[warp]]).reshape(-1)]
        if isinstance(product.a, np.ndarray):
            items.append(np.asarray(product.a[warp]).reshape(-1))
        ranges.append(_merged(places_of_units(wave, np.unique(np.concatenate(items)), 16), 16))
    trace.emit("product", product.lanes, ranges=ranges)


def _merged(starts: Array, nbytes: int) -> Ranges:
    """Pieces of `nbytes` bytes, sorted by where they start, as ranges."""
    breaks = (starts[1:] - starts[:-1] != nbytes).nonzero()[0]
    first, last = np.concatenate((starts[:1], starts[breaks + 1])), np.concatenate((starts[breaks], starts[-1:])) + nbytes
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _traced_release(trace: Trace, original: Any) -> Any:
    def release(self: Any, released: Any, result: bool) -> None:
        for parked in released if result else ():
            site, lanes = parked.waiter.site, parked.waiter.lanes
            places = np.full(len(lanes), place_of_unit(self.wave, parked.unit, 8))
            words = site.opcode.split(".")
            relaxed, narrow = "relaxed" in words, is_narrow(words)
            trace.emit("waited", lanes, place=(site.line, site.opcode), places=places, relaxed=relaxed, narrow=narrow)
        original(self, released, result)

    return release


def _traced_arrival(trace: Trace, original: Any) -> Any:
    def land(self: Any) -> None:
        places = np.array([place_of_unit(self.barriers.wave, unit, 8) for unit in self.units.tolist()])
        trace.emit("copies-arrive", self.lanes, place=getattr(self, "traced", None), places=places)
        original(self)

    return land
