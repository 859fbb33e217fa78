"""Compares the launches of a block of `consan.check()` that may run at the same time (SEMANTICS 12, R-GM14).

A launch is compared when it is made, with each earlier one that is not over when it starts. Their accesses are those that the recording
engine has kept. Those of a launch that is checked beside the program come later, and its pairs are compared then (pairs/awaited.py). Bytes
of an array are the same in both launches, wherever its copy was on the device.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from consan.checker.compiled.concurrent_launches import SYS_SCOPE, Conflict, RetainedFlag, Rows, is_flagged, releases, widest
from consan.dataclass import dataclass
from consan.reports.decoding import launch_race as words
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.coverage import NOT_COMPARED
from consan.session.comparing.array_rows import NO_ROWS, ByRows, both_in, is_inside
from consan.session.comparing.comparisons import BEFORE, EXCHANGE, HOST_CODE, PASSED, Comparisons
from consan.session.comparing.launch_memory import LaunchShape
from consan.session.comparing.pairs.done import Done, GraphNode, MadeLaunch, MadeOperation
from consan.session.comparing.pairs.pair import LaunchPair, Raced
from consan.session.comparing.peer_flags import FirstValues, judged_of_process, left_in_flags
from consan.session.comparing.process_log import ProcessLog
from consan.session.comparing.streams import NONE, LaunchOrder, Numbers, Stream, StreamPlace, all_behind

if TYPE_CHECKING:
    from consan.session.modules.prepared import Prepared

MOST_ROWS = 1 << 23  # accesses that are kept, of all launches that may still run
MOST_RUNNING = 4096  # launches, and operations of a framework
_TOO_MANY = f"more than {MOST_RUNNING:,} launches and operations were made while the host waited for none: the oldest were not compared"
MOST_STRANGERS = 3  # names in a reason
MOST_OF_PROGRAM = 512  # of a program on a GPU
_SHARE = 8  # of these go at once
_NEXT = -1  # stands for the number of the launch that is made
_LEFT_OUT = f"the host waited for none of {MOST_OF_PROGRAM:,} launches and operations, and it was compared with no later ones"
_EntryOf = tuple["Prepared", str]


@dataclass(eq=False)
class ConcurrentLaunches:
    """The launches of a block, or of a program. `required`: a launch that cannot be compared makes its report incomplete.

    `of_program`: they are all that a program does on a GPU. Gaps in the comparison are reported for the kernels that consan checks.
    """

    required: bool = True
    of_program: bool = False
    timeline: LaunchOrder = field(default_factory=LaunchOrder)
    log: ProcessLog | None = None  # of a program of several processes
    devices: dict[int, int] = field(default_factory=dict)  # the numbers of GPUs, by those of contexts
    _awaited: list[LaunchPair] = field(default_factory=list)  # pairs whose accesses are to come
    _raced: list[tuple[LaunchPair, Raced]] = field(default_factory=list)  # those that were compared since, and are not reported yet
    _done: dict[int, Done] = field(default_factory=dict)  # those that may run at the same time as a later one
    _rows: int = 0  # of these, at most: launches that are alike share them
    _placed: ByRows[Rows] = field(default_factory=ByRows)
    _starts: dict[int, Numbers] = field(default_factory=dict)  # what is over when these start
    _left: FirstValues = field(default_factory=dict)  # what those before have left in flags
    _names: dict[Stream, str] = field(default_factory=dict)
    _kernels: dict[_EntryOf, tuple[ModuleSites, int]] = field(default_factory=dict)  # their sites, and the scopes of their fences
    _strangers: dict[_EntryOf, set[str]] = field(default_factory=dict)  # by kernel: what it was not compared with

    def nodes(self) -> tuple[GraphNode, ...] | None:
        """All that was done, as nodes of a graph. None: it was too much."""
        starts, done = self._starts, sorted(self._done.items())
        return None if self.timeline.forgotten else tuple(GraphNode(number, each, starts[number]) for number, each in done)

    def graph_launched(self, by: Comparisons, nodes: Sequence[GraphNode], stream: Stream, after: Numbers) -> tuple[Numbers, Numbers]:
        """A graph is launched, after what is over by then. Its nodes are not compared with each other.

        Gives the numbers of its nodes, and all that is over behind it.
        """
        place, numbers = self.place(stream, programmatic=False), dict[int, int]()
        start = place.start | after & self.timeline.everything
        others = self.timeline.everything - start
        for node in nodes:
            begins = start | Numbers(numbers[each] for each in node.start)
            done = replace(node.done, stream=stream)
            numbers[node.number] = self._add(by, done, StreamPlace(begins, begins), waits=False, others=others)
        made = Numbers(numbers.values())
        return made, start | made

    def place(self, stream: Stream | None, *, programmatic: bool) -> StreamPlace:
        """The place of the next launch. One without a stream comes after all others, and before all that follow.

        Raises `UsageError` if the stream is one of another block.
        """
        if stream is not None:
            return stream.place(self.timeline, programmatic=programmatic)
        return StreamPlace(everything := self.timeline.everything, everything)

    def stream_of(self, number: int) -> Stream | None:
        """The stream of a launch or operation that may still run."""
        return self._done[number].stream

    def launched(
        self, by: Comparisons, prepared: Prepared, shape: LaunchShape, stream: Stream | None, *, programmatic: bool = False
    ) -> Rows | None:
        """Compare a launch, the last one that was made, with those that may run at the same time, and keep it.

        Returns its accesses if they are known.
        """
        retained, place = by.accesses.last, self.place(stream, programmatic=programmatic)
        shape = shape if by.accesses.touched is None else replace(shape, footprint=by.accesses.touched)
        kernel = prepared, shape.entry
        if kernel not in self._kernels:
            fences = max(widest(function.fence_scopes) for function in prepared.instrumented.reachable(shape.entry))
            self._kernels[kernel] = by.sites_of(prepared), fences
        module, fences = self._kernels[kernel]
        rows = shape.rows(retained, self._placed)
        rows, flags = None if rows is None else self._with_room(rows), None if retained is None else retained.peer_flags
        awaited = by.accesses.awaited if rows is None else None
        launch = MadeLaunch(by, prepared, module, shape, stream, fences, rows, prepared.address_name, flags, awaited)
        self._add(by, launch, place, waits=retained is not None and retained.waited)
        return rows

    def operated(
        self, by: Comparisons, operation: words.OperationSide, stream: Stream, rows: Rows | None, owners: Sequence[Any] = ()
    ) -> None:
        """The same for an operation of the framework. `rows`: None if they are not known. `owners`: they keep its arrays where they are."""
        done = MadeOperation(operation, stream, None if rows is None else self._with_room(rows), owners)
        self._add(by, done, self.place(stream, programmatic=False), waits=False)

    def met(self, key: str, stream: Stream | None, *, sends: bool, receives: bool) -> None:
        """A barrier of processes: what is over then comes before what others do behind it. `stream`: None if only hosts take part."""
        if self.log is None:
            return
        place = self.place(stream, programmatic=False) if stream is not None else StreamPlace(NONE, NONE)
        concurrent = self.timeline.everything - place.start
        number = self.timeline.note(place, waits=False)
        self.log.met(number, concurrent, key, sends=sends, receives=receives)
        if stream is None:
            self.timeline.host_waits(Numbers((number,)))
            return
        self._done[number], self._starts[number] = MadeOperation(EXCHANGE, stream, NO_ROWS), place.start
        stream.launched(number, place)

    def unfinished(self) -> Iterator[tuple[int, Rows]]:
        """The launches and operations that may still run, and their accesses if they are known."""
        for number in self.timeline.everything:
            if (rows := self._done[number].rows) is not None:
                yield number, rows

    def flagged(self, touched: Rows) -> Numbers:
        """The launches that may still run, and that the host may know to be over by a flag that it touches."""
        flagged = [number for number, rows in self.unfinished() if is_flagged(rows, touched)]
        published = {each for each in flagged if (done := self._done[each]).rows is None or releases(done.rows, done.fences, SYS_SCOPE)}
        for each in set(flagged) - published:
            done = self._done[each]
            self._done[each] = replace(done, polled=True) if isinstance(done, MadeLaunch) else done
        return Numbers(published)

    def met_host(self, by: Comparisons, number: int, rows: Rows) -> None:
        """Compare something that may still run with what the host's code has touched."""
        self._compare(by, number, MadeOperation(HOST_CODE, None, rows), NONE, waited=False)

    def ends_unknown(self, stream: Stream) -> bool:
        """Whether an operation of a stream, of unknown accesses, is the last of all: it stands for those of its kind right behind it."""
        last = self.timeline.last()
        done = None if last is None else self._done[last]
        return isinstance(done, MadeOperation) and done.rows is None and done.stream is stream

    def detached(self, address: int, nbytes: int) -> dict[int, Rows]:
        """Take the accesses to this memory out of each launch that may still run; gives those that there are."""
        found = {}
        for number, done in self._done.items():
            if done.awaited is not None:
                self._done[number] = replace(done, freed=(*done.freed, (address, nbytes)))
            if done.rows is not None:
                inside = is_inside(done.rows, address, nbytes)
                if inside.any():
                    found[number] = done.rows[inside]
                    self._done[number] = replace(done, rows=done.rows[~inside])
        if found:
            self.timeline.note_event()  # these stand for no later launches
        return found

    def attach(self, rows: dict[int, Rows]) -> None:
        """Add accesses to launches. Some of them may be over now."""
        for number in rows.keys() & self._done.keys():
            done = self._done[number]
            if done.rows is not None:
                self._done[number] = replace(done, rows=np.concatenate([done.rows, rows[number]]))

    def _with_room(self, rows: Rows) -> Rows | None:
        if self._rows + len(rows) > MOST_ROWS:
            self._count_rows()
        return rows if self._rows + len(rows) <= MOST_ROWS else None

    def _count_rows(self) -> None:
        self._rows = sum(map(len, {id(each.rows): each.rows for each in self._done.values() if each.rows is not None}.values()))

    def _add(self, by: Comparisons, done: Done, place: StreamPlace, *, waits: bool, others: Numbers | None = None) -> int:
        """`others`: those with which it is compared; None: all that may run at the same time."""
        concurrent = self.timeline.everything - place.start if others is None else self.timeline.left(others)
        for number in concurrent:
            self._compare(by, number, done, place.start, waited=number in place.waited)
        number = self.timeline.note(place, waits=waits)
        if self.log is not None:
            self.log.add(number, done, concurrent, self.timeline.everything - self.timeline.perhaps_over)
        self._done[number], self._starts[number] = done, place.start
        self._rows += 0 if done.rows is None else len(done.rows)
        if done.stream is None:
            self.timeline.host_waits(self.timeline.everything)
        else:
            done.stream.launched(number, place)
        if len(self.timeline.running) > (MOST_OF_PROGRAM if self.of_program else MOST_RUNNING):
            self._leave_out(by, sorted(self.timeline.running)[: 1 + len(self.timeline.running) // _SHARE])
        if len(self._done) > len(self.timeline.running):
            left_in_flags((done for number, done in self._done.items() if number not in self.timeline.running), self._left)
            self._done = {each: self._done[each] for each in self.timeline.running}
            self._starts = {each: self._starts[each] for each in self.timeline.running}
            self._count_rows()
        return number

    def _leave_out(self, by: Comparisons, oldest: list[int]) -> None:
        """Compare the oldest launches with no later ones."""
        self.timeline.host_waits(Numbers(oldest))
        if not self.of_program:
            by.incomplete(_TOO_MANY)
            return
        for done in (each for each in map(self._done.__getitem__, oldest) if isinstance(each, MadeLaunch)):
            done.lacks(_LEFT_OUT, needed=bool(done.reaches))

    def pass_by(self, streams: Collection[Stream]) -> None:
        """Compare launches that all these streams come behind with no later ones. One stands for them: a new stream may run beside."""
        over = all_behind(streams, self.timeline)
        if len(over) > 1:
            self.timeline.host_waits(over)
            number = self.timeline.note(StreamPlace(NONE, NONE), waits=False)
            reaches = next(filter(None, (self._done[each].reaches for each in over)), "")
            self._done[number], self._starts[number] = MadeOperation(PASSED, next(iter(streams)), None, reaches=reaches), NONE
            for each in streams:
                each.put_behind(number)

    def _compare(self, by: Comparisons, number: int, later: Done, start: Numbers, *, waited: bool) -> None:
        """`number`: of the earlier one. `start`: what is over when the later one starts."""
        pair = LaunchPair(by, number, self._done[number], later, start, waited, number in self.timeline.perhaps_over)
        if pair.is_awaited and not pair.on_two_devices:
            self._awaited.append(pair)
        else:
            known = self._known(pair)
            self._tell(known, known.raced())

    def compare_awaited(self, lock: AbstractContextManager[Any]) -> None:
        """Compare the pairs whose accesses have come. Nobody waits: this holds no lock meanwhile, and reports nothing."""
        with lock:
            pairs = self._ready()
        raced = [(pair.without_rows, pair.raced()) for pair in pairs]
        with lock:
            self._raced += raced

    def tell_awaited(self, lock: AbstractContextManager[Any]) -> None:
        """Report what such pairs have shown."""
        with lock:
            self._raced += [(pair, pair.raced()) for pair in self._ready()]
            raced, self._raced = self._raced, []
            for pair, found in raced:
                self._tell(pair, found)

    def _ready(self) -> list[LaunchPair]:
        for number, done in self._done.items() if self._awaited else ():
            if done.awaited is not None and done.awaited.there:
                known = done.known(self._placed)
                rows = None if known.rows is None else self._with_room(known.rows)
                self._done[number] = replace(known, rows=rows)
                self._rows += 0 if rows is None else len(rows)
        ready = [self._known(each) for each in self._awaited if not each.is_awaited]
        self._awaited = [each for each in self._awaited if each.is_awaited]
        return ready

    def _known(self, pair: LaunchPair) -> LaunchPair:
        if pair.earlier.awaited is None and pair.later.awaited is None:
            return pair
        earlier, later = (each if isinstance(each, MadeOperation) else each.known(self._placed) for each in (pair.earlier, pair.later))
        return replace(pair, earlier=earlier, later=later)

    def _tell(self, pair: LaunchPair, raced: Raced) -> None:
        """Report what the comparison of two has shown."""
        by, earlier, later, (found, unknown, signals) = pair.by, pair.earlier, pair.later, raced
        if unknown:
            if not self.of_program or earlier.reaches or later.reaches or not pair.on_two_devices:
                self._tell_unknown(pair)
            return
        if pair.waited:
            by.dependents.add((earlier.name, later.name))
        if signals:
            found, uncertain = [], True
            if pair.scope == SYS_SCOPE:
                done, starts = {**self._done, _NEXT: later}, {**self._starts, _NEXT: pair.start}
                found, uncertain = judged_of_process(done, starts, earlier, later, self._left)
            if uncertain:
                by.incomplete(words.perhaps_by_memory(earlier.name, later.name))
        if found and pair.perhaps:
            by.incomplete(words.perhaps_in_order(earlier.name, later.name))
        else:
            by.found(list(self._races(pair, found)))

    def _tell_unknown(self, pair: LaunchPair) -> None:
        """Tell that two were not compared: of a program, each kernel has the reason."""
        by, earlier, later = pair.by, pair.earlier, pair.later
        launches = isinstance(earlier, MadeLaunch), isinstance(later, MadeLaunch)
        if not self.of_program and (self.required or not any(launches)):
            by.incomplete(f"the launches of {earlier.name} and {later.name} were not compared: the accesses of one are not known in full")
            return
        unknown = [each for each in (earlier, later) if each.rows is None]  # none: one of them perhaps touches what the other one does
        lost = not self.of_program and (not unknown or any(isinstance(each, MadeLaunch) or each.name == BEFORE for each in unknown))
        lost |= pair.waited and all(launches) and (earlier.name, later.name) not in by.dependents
        lost |= bool(earlier.reaches) and not launches[0]  # it stands for such
        for each, other in ((earlier, later), (later, earlier)):
            if isinstance(each, MadeLaunch):
                stranger = "" if each.rows is None or other.rows is not None else self._stranger(each, other)
                whose = f"all accesses of {stranger}" if stranger else "all its accesses"
                each.lacks(f"{NOT_COMPARED}: {whose} are not known", needed=lost or (pair.on_two_devices and bool(each.reaches)))

    def _stranger(self, launch: MadeLaunch, other: Done) -> str:
        """The name of what a launch was not compared with: a kernel has few names."""
        names = self._strangers.setdefault((launch.prepared, launch.shape.entry), set())
        if len(names) < MOST_STRANGERS:
            names.add(other.name)
        return other.name if other.name in names else "others"

    def _races(self, pair: LaunchPair, found: Sequence[Conflict]) -> Iterator[Finding]:
        earlier, later = pair.earlier, pair.later
        unordered = words.NO_DEVICE_EDGE if pair.on_two_devices else words.NO_STREAM_EDGE
        situation = words.NO_GRID_WAIT if pair.waited else words.NO_CHAINED_WAIT if earlier.stream is later.stream else unordered
        if earlier.stream is not None and later.stream is not None and earlier.stream.graph is later.stream.graph is not None:
            situation = words.NO_GRAPH_EDGE
        if later.stream is None and isinstance(later, MadeOperation):
            unpublished = words.HOST_SCOPE if earlier.fences >= 0 else words.NO_HOST_RELEASE
            situation = unpublished if earlier.polled else words.NO_HOST_WAIT
        spelled = next((each.stream.edge for each in (later, earlier) if each.stream is not None and each.stream.edge), "")
        edge = words.StreamEdge(self._named(earlier.stream), self._named(later.stream), spelled)
        for each in found:
            again = int(each.first["flags"]) & RetainedFlag.GIVEN_AGAIN
            first, second = both_in(each.first, each.second)
            yield words.launch_race(
                earlier.side(first), later.side(second), words.GIVEN_AGAIN if again else situation, edge,
                ahead=int(second["address"]) - int(first["address"]),
                count=each.count, ctas=each.ctas, same_value=each.same_value,
            )  # fmt: skip

    def _named(self, stream: Stream | None) -> str:
        """The name of a stream in reports: they are counted in the order in which they are named."""
        if stream is None:
            return "no stream"
        where = f" of GPU {self.devices[stream.context]}" if len(self.devices) > 1 else ""
        return f"{stream.name or self._names.setdefault(stream, f'stream {len(self._names) + 1}')}{where}"
