"""Launches that a framework makes by itself, of a module that it has loaded, recorded as the session's own are.

The framework launches inside a block. Before it, the launch gets a log. The log is judged in the background (background.py), or
else behind the block, where the host waits for the kernel.
For a launch that cannot be recorded (without room for its log, or in a context that may end with its log) the framework is given the
plain form of the module, to launch in place of its own. Likewise it is given the form that records global memory, for a launch that is
looked at (global_looks.py). A launch into a graph becomes a node with a module of its own (graph_nodes.py).

Not handled: repeating a launch whose log does not tell all, because the framework owns the memory. The report is `incomplete` then.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Generator, Hashable, Iterator
from dataclasses import field, replace
from typing import Any, Final, cast

from consan.backends.armed import AlikeLaunches
from consan.backends.base import THREAD_STREAM, Handle
from consan.dataclass import dataclass
from consan.ranges import LaunchExtents
from consan.session.comparing.comparisons import Comparisons
from consan.session.comparing.followed_streams import FollowedStreams
from consan.session.comparing.launch_memory import LaunchShape, Memory
from consan.session.comparing.peers import PeerMemory
from consan.session.executing.background import Background
from consan.session.executing.graph_nodes import GraphNodes
from consan.session.executing.judging import Judge
from consan.session.executing.loading import Modules
from consan.session.executing.watch import SessionWatch
from consan.session.framework_launch import FrameworkLaunch, loaded_as, records_global, shape_of
from consan.session.global_looks import NONE, GlobalLook, GlobalLooks, PlacedLaunch
from consan.session.kept_launches import KeptLaunches
from consan.session.known_in_graphs import KnownInGraphs
from consan.session.launches_by_others import LaunchesByOthers, get_ready
from consan.session.modules.device import Device
from consan.session.modules.in_clusters import grid_in_ctas
from consan.session.modules.layouts import AddressNames
from consan.session.modules.parameters import Asked, Parameters
from consan.session.modules.prepared import Prepared
from consan.session.planning.proofs import LaunchBytes
from consan.session.planning.selection import Selection
from consan.session.repeated_launch import KnownLaunches, LaunchesByProof, LaunchesLikeOne, RepeatedLaunch, SilentLaunches
from consan.session.spared_launches import SparedLaunches

_BY_ADDRESS: Final = Memory((), shared=True)  # bytes of the device are the same for all launches


@dataclass(eq=False)
class Frameworks:
    """The launches of frameworks in one session. The caller holds the device."""

    device: Device
    modules: Modules
    judge: Judge
    watch: SessionWatch
    selection: Selection
    background: Background
    names: AddressNames
    streams: FollowedStreams
    comparisons: Comparisons
    context: int  # its number among those of the program
    kept: KeptLaunches
    era: int = 0  # one more whenever launches that repeat have to take the long way once
    _repeated: dict[tuple[Hashable, ...], RepeatedLaunch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.background.repeating.on_left = self.look_again

    def look_again(self) -> None:
        """Launches that repeat take the long way once, so that it is seen that earlier ones have left something to them."""
        with self.background.lock:
            self.era += 1
            for each in list(self._repeated.values()):
                each.alike.take_back()

    @functools.cached_property
    def peers(self) -> PeerMemory:
        """Memory that other GPUs reach, too."""
        return PeerMemory(self.device.backend.contexts, self.judge.recording.options.looks_at_global, self.streams)

    @functools.cached_property
    def by_others(self) -> LaunchesByOthers:
        """Launches that the frameworks do not make. The first module is loaded now."""
        get_ready(self.device.backend.work)
        return LaunchesByOthers(self.device.backend, self.judge.recording.kernels, self.modules.used)

    @functools.cached_property
    def graphs(self) -> GraphNodes:
        """The launches that become nodes of graphs."""
        return GraphNodes(self.device, self.modules, self.judge)

    @functools.cached_property
    def known_in_graphs(self) -> KnownInGraphs:
        """Those whose nodes need no log."""
        return KnownInGraphs(self.background, self.looks)

    def settle(self) -> None:
        """Conclude all launches, and make the proofs that are left."""
        self.streams.read_noted()
        self._forget_repeated()
        self.background.settle()
        self.streams.concurrent.tell_awaited(self.streams.lock)
        self.graphs.settle(altered=self.streams.captures.altered, lost=self.streams.captures.counted.take())
        self.looks.settle(self.selection.left_in_a_hurry(never=True))

    def forget(self) -> None:
        """Start afresh after a report."""
        self._forget_repeated()
        self.background.forget()
        self.looks.forget()
        self.kept.forget()
        self.streams.seen.forget()

    def tell_repeated(self) -> None:
        """Count the launches that are not counted yet: those that repeat, and those of others."""
        self.streams.read_noted()
        self.by_others.tell()
        for each in list(self._repeated.values()):
            each.tell()

    def _forget_repeated(self) -> None:
        self.tell_repeated()
        self._repeated.clear()
        self.era += 1

    def elsewhere(self, stream: int) -> bool:
        """Whether a launch is made in another context, or into a graph."""
        contexts = self.device.backend.contexts
        return (contexts is not None and contexts.other() != 0) or self.device.backend.capturing(stream)

    def repeated(self, prepared: Prepared, launch: FrameworkLaunch) -> RepeatedLaunch | None:
        """For launches like one that was made. None: they take the long way."""
        with self.device.lock:
            return None if self._may_differ(prepared, launch) else self._repeated_like(prepared, launch)

    def known_now(self, before: RepeatedLaunch, asked: Asked) -> RepeatedLaunch | None:
        """For launches like one that was checked meanwhile, if they are known since. `asked`: reads the parameters of the next."""
        prepared, launch, alike = before.prepared, before.launch, before.alike
        with self.device.lock:
            if not isinstance(alike, LaunchesLikeOne) or alike.checked.is_checked_now or self._may_differ(prepared, launch):
                return None
            self.background.look()
            found = self._repeated_like(prepared, replace(launch, args=asked), only_known=True)
            return None if found is before else found

    def _repeated_like(self, prepared: Prepared, launch: FrameworkLaunch, *, only_known: bool = False) -> RepeatedLaunch | None:
        if (grid := grid_in_ctas(prepared, launch.entry, launch.grid)) is not launch.grid:
            launch = replace(launch, grid=grid)
        key = prepared.number, launch.module, launch.entry, launch.grid, launch.block, launch.cluster, launch.shared, launch.stream
        found = self._repeated.get(key)
        alike = self._alike(prepared, launch, None if found is None else found.alike, only_known=only_known)
        if alike is None or (found is not None and found.alike is alike and found.era == self.era):
            return found if alike is not None else None
        if found is not None:
            found.tell()
        asks = self.looks.may_tell(prepared, launch.entry)
        found = self._repeated[key] = RepeatedLaunch(self, prepared, launch.without_arguments, alike, asks, self.era)
        return found

    def _alike(
        self, prepared: Prepared, launch: FrameworkLaunch, before: AlikeLaunches[Any] | None, *, only_known: bool
    ) -> AlikeLaunches[Any] | None:
        """How launches like one are made. `before`: known so far; None: they are not made alike."""
        if self.looks.owes_pairs(prepared, launch):
            return None
        if self.judge.recording.kernels.knows(prepared, launch.entry, launch.grid, launch.block, launch.cluster):
            return before if type(before) is SilentLaunches else SilentLaunches(self.device, self.background.lock, launch.stream)
        if not self.background.accepts(prepared, launch.entry):
            return None
        shape = shape_of(prepared, launch)
        known = KnownLaunches.of(self, prepared, launch, shape, before)
        if known is not None or only_known:
            return known
        found: AlikeLaunches[Any] | None = LaunchesByProof.of(self, prepared, launch, before)
        if found is None and not self.selection.spares:
            found = self.background.repeating.of(prepared, shape, launch.stream)
        return found or LaunchesLikeOne.of(self, prepared, launch, shape) or SparedLaunches.of(self, prepared, launch)

    def plain(self, prepared: Prepared, launch: FrameworkLaunch) -> int:
        """The handle of the kernel as it is."""
        backend = cast(Any, self.device.backend)
        with backend.outside_captures():
            plain = self.modules.plain(prepared, launch.module)
            return int(backend.function(plain, launch.entry, launch.shared, launch.cluster))

    def _may_differ(self, prepared: Prepared, launch: FrameworkLaunch) -> bool:
        """Whether launches that look alike may not be made alike."""
        contexts = self.device.backend.contexts
        if prepared.recorded is None or (contexts is not None and contexts.refusal):
            return True
        return self.selection.filters or self.judge.keeper is not None or not launch.threads or launch.stream == THREAD_STREAM

    @functools.cached_property
    def looks(self) -> GlobalLooks:
        """The looks at global memory."""
        return GlobalLooks(self.modules, self.judge, self.background)

    @contextlib.contextmanager
    def recorded(self, prepared: Prepared, launch: FrameworkLaunch) -> Iterator[Handle | None]:
        """Inside the block the framework launches. Gives the module whose kernel it is to launch; None: its own."""
        if not launch.threads:  # the framework launches nothing, or is refused
            yield None
            return
        if (grid := grid_in_ctas(prepared, launch.entry, launch.grid)) is not launch.grid:
            launch = replace(launch, grid=grid)
        self.modules.used[prepared.number] = prepared
        if not self.selection.accepts(prepared.number, launch.entry, (launch.grid, launch.block, launch.cluster)):
            yield self._unrecorded(prepared, launch)
            return
        contexts = self.device.backend.contexts
        if contexts is not None and contexts.refusal:
            self.judge.recording.kernels.lacks_record(prepared, launch.entry, contexts.refusal)
            yield self._unrecorded(prepared, launch)
            return
        if launch.buffers is not None:
            self.names.note_buffers(prepared, launch.entry, launch.buffers())
        self.kept.before(prepared, launch)
        reaches = self._reached(prepared, launch)
        with loaded_as(prepared, launch.module):
            captured, compares = self.device.backend.capturing(launch.stream), self.streams.compares_in(launch.stream, self.context)
            touched = self._touched(prepared, launch, launch.args, reaches, captured=captured) if captured or compares else None
            how = {"needed": bool(reaches), "with_others": bool(reaches) and self.streams.several_devices}
            look = NONE if captured else self.looks.of(prepared, launch, compared=compares and touched is None, **how)
            form, began = look.whole or prepared, self.begun(look)
            keeps, alone = compares and not captured and records_global(form, launch), not (reaches or prepared.chains)
            alone = alone and not (self.streams.several_devices or self.comparisons.accesses.peers)
            with self.judge.recording.keeping(keeps, later=alone), self.streams.making():
                chosen = yield from self._launched(prepared, launch, look)
            self.judge.recording.kernels.shapes.ran(prepared.plain, launch.entry, launch.grid, launch.block, looked=look.proven > 0)
            if chosen is prepared:
                self.looks.made(prepared, launch, look)
            elif chosen is look.whole:
                self.judge.looked(prepared, launch.entry)
                if compares:
                    self.looks.compared(prepared, launch, self.comparisons.accesses.awaited or time.monotonic() - began)
            shape = LaunchShape(launch.entry, launch.grid, launch.block, _BY_ADDRESS, touched, reaches)
            self._compare(look.form_of(chosen), shape, launch)

    def _compare(self, chosen: Prepared, shape: LaunchShape, launch: FrameworkLaunch) -> None:
        """Compare a launch that was made with others."""
        rows = self.streams.framework_launched(self.comparisons, chosen, shape, launch.stream, launch.edge, self.context)
        if shape.reaches and not self.peers.others_know(rows):
            self.comparisons.launch_lacks(chosen, launch.entry, f"{shape.reaches}, and {self.peers.why_not}")

    def among_streams(self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters | None) -> PlacedLaunch | None:
        """A launch like earlier ones that only needs its place in the order: its accesses are known, or nobody looks at them.

        Else None. `launched_again` places it.
        """
        several = self.streams.several
        if (several and not self.streams.compares) or self.streams.several_devices or prepared.chains or self.elsewhere(launch.stream):
            return None
        reaches = self.peers.reached(prepared, launch.entry, lambda: args)
        shape = LaunchShape(launch.entry, launch.grid, launch.block, _BY_ADDRESS, reaches=reaches)
        if reaches and (look := self.looks.known(prepared, launch, args)) is not None:
            return PlacedLaunch(shape, look)
        touched = self._touched(prepared, launch, lambda: args, reaches, captured=False) if several else None
        if several and touched is None and self.looks.may_compare(prepared, launch):
            return None
        return PlacedLaunch(replace(shape, footprint=touched))

    def launched_again(self, prepared: Prepared, launch: FrameworkLaunch, placed: PlacedLaunch) -> None:
        """Such a launch was made."""
        self.judge.recording.accesses.forget()
        self.looks.made(prepared, launch, placed.look)
        self._compare(placed.look.form_of(prepared), placed.shape, launch)

    def _without_room(self, prepared: Prepared, launch: FrameworkLaunch, look: GlobalLook) -> Generator[Handle | None, None, Prepared]:
        """Launch without the log that has no room until a check is over. Returns the form that was launched."""
        if look.whole is not None:
            return (yield from self._launched(prepared, launch, self.looks.put_off(prepared, launch)))
        self.selection.hurried[prepared.number, launch.entry, (launch.grid, launch.block, launch.cluster)] += 1
        yield self._unrecorded(prepared, launch)
        return prepared

    def _reached(self, prepared: Prepared, launch: FrameworkLaunch) -> str:
        """How a launch that is about to be made may reach memory of other GPUs. If it does, launches are compared from now on."""
        if found := self.peers.reached(prepared, launch.entry, launch.args):
            self.streams.second()
        return found

    def looks_where(self, prepared: Prepared, entry: str) -> bool:
        """Whether launches of a kernel may reach memory that others reach, and the report does not say so of the kernel yet."""
        if self.judge.recording.kernels.is_beyond(prepared, entry):
            return self.peers.of_process and self.streams.several_devices
        return self.peers.of_process or self.peers.shares

    def _unrecorded(self, prepared: Prepared, launch: FrameworkLaunch) -> Handle | None:
        """The module for a launch that is not recorded. None: the framework's own, in which the kernel is as it was."""
        if prepared.recorded is not None and launch.entry in prepared.recorded.refused:
            return None
        with self.device.backend.outside_captures():
            return self.modules.plain(prepared, launch.module)

    def _touched(self, prepared: Prepared, launch: FrameworkLaunch, asked: Asked, reaches: str, *, captured: bool) -> LaunchBytes | None:
        """The bytes that a launch touches, if its text and its parameters determine them. One that can be recorded is, if they may not.

        `reaches`: how it reaches memory of others.
        """
        proofs = self.judge.proofs
        args = asked() if proofs.may_prove(prepared, launch.entry) else None
        found = proofs.touched(prepared, launch.entry, args, LaunchExtents(launch.grid, launch.block))
        if prepared.chains:  # the text does not say what is behind a griddepcontrol.wait
            return None
        reached = bool(reaches) and self.streams.log is not None
        doubt = reached or (found is not None and self.streams.several_devices and not found.certain)
        return None if doubt and not captured else found

    def begun(self, look: GlobalLook) -> float:
        """A launch begins. If others are to know when, nothing else runs at its begin."""
        log = self.streams.log
        if log is not None and (look.whole is not None or (look.known is not None and look.known.waits)):
            self.device.backend.synchronize()
            log.begins()
        return time.monotonic()

    def _counts_again(self, prepared: Prepared, launch: FrameworkLaunch) -> bool:
        """Whether the launch can show nothing new: its kernel records nothing, and an equal launch was judged."""
        if prepared.recorded is None or not prepared.recorded.kernel(launch.entry).silent:
            return False
        if self.judge.keeper is not None or self.device.backend.capturing(launch.stream):
            return False
        return self.judge.recording.kernels.counts_again(prepared, launch.entry, launch.grid, launch.block, launch.cluster)

    def _into_graph(self, prepared: Prepared, launch: FrameworkLaunch) -> Generator[Handle | None, None, Prepared]:
        """Launch into a graph. Returns the form that was launched."""
        capture, counted = self.streams.capture_of(launch.stream), self.streams.counted_in(launch.stream)
        with self.device.backend.outside_captures():
            differs = self._may_differ(prepared, launch) or self.looks_where(prepared, launch.entry)
            tell = None if differs else self.known_in_graphs.teller(prepared, launch, shape_of(prepared, launch))
            known = None if tell is None else self.graphs.known(launch.entry, launch.stream, tell, capture, counted)
            plain = None if known is None else self._unrecorded(prepared, launch)
        if known is not None:
            with known.refused():
                yield plain
            return prepared
        with self.device.backend.outside_captures():
            planned = replace(launch.planned, divides=0)
            node = self.graphs.begun(prepared, launch.entry, planned, launch.stream, launch.args() or ())
        if node is None:
            yield self._unrecorded(prepared, launch)
            return prepared
        self.names.note_parameters(node.prepared, launch.entry, launch.args)
        with node.refused():
            yield self.graphs.arm(node, capture)
        self.graphs.ended(node)
        return node.prepared

    def _launched(self, prepared: Prepared, launch: FrameworkLaunch, look: GlobalLook) -> Generator[Handle | None, None, Prepared]:
        """Launch. Returns the form that was launched."""
        judge, backend, entry = self.judge, self.device.backend, launch.entry
        if backend.capturing(launch.stream):
            return (yield from self._into_graph(prepared, launch))
        if look.whole is None and self._counts_again(prepared, launch):
            with self.watch.ending(prepared, entry, launch.threads):
                yield None
                backend.watch(launch.stream)
            return prepared
        form = look.whole or prepared
        shape, background = shape_of(form, launch), self.background.accepts(form, entry, repeats=False)
        key, chosen, how = (prepared.number, entry, shape[3:6]), form, {"alone": records_global(form, launch)}
        started, room = self.background.idle(shape, first=self.selection.is_first(key), **how) if background else (None, True)
        if not room:
            return (yield from self._without_room(prepared, launch, look))
        self.selection.recorded[key] += 1
        if started is None:
            chosen, started = judge.start(form, entry, launch.planned, None, _args(form, launch, look), background=background)
        if chosen.recorded is not None and chosen.recorded.has_global(entry):
            self.names.note_parameters(chosen, entry, lambda: look.args or launch.args())
        self.modules.used[chosen.number], chosen.launched = chosen, True
        if started is None:
            yield self._unrecorded(chosen, launch)
            return chosen
        if background and self.background.accepts(chosen, entry, repeats=False):
            shape = shape if chosen is form else shape_of(chosen, launch)
            ending = self.watch.ending(chosen, entry, launch.threads)
            with ending, self.background.launched(chosen, shape, started, launch.stream, launch.args):
                yield None if chosen is prepared else chosen.loaded
            return chosen
        if not started.silent and launch.stream not in backend.ordered_streams:
            backend.synchronize()  # the memory for its log is cleared on another stream
        judged = judge.judged(chosen, entry, started, chosen.loaded)
        with judged, self.watch.ending(chosen, entry, launch.threads):
            yield None if chosen is prepared else chosen.loaded
            backend.watch(launch.stream)
            if not started.silent:
                self.watch.after(chosen, entry, None, launch.threads, alone=False)
        return chosen


def _args(form: Prepared, launch: FrameworkLaunch, look: GlobalLook) -> Parameters:
    """The parameters for a proof that the launch may be recorded without global memory; none where there is nothing to prove."""
    return () if look.whole is not None or not records_global(form, launch) else launch.args() or ()
