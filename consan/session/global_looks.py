"""Global memory in the launches of frameworks with `--global auto`: each launch is proven free of races, compared, or left out and named.

A framework launches the form without global memory. If the parameters of a launch are known, arithmetic may prove that its accesses cannot
race (proofs.py). The first launch of each shape has its proof before it runs, the others have theirs before the report: a proof follows
from the text, the parameters, the grid and the block alone, so it does not matter when it is made. A first launch without a proof takes
the form with global memory. It is checked beside the program (background.py), unless it is compared with launches of other streams. The
report counts all later launches that have no proof.

A launch that reaches memory of other GPUs is compared each time. If its text and its parameters alone decide what it accesses, those with
the same parameters have no log behind the first one: their accesses are known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from consan._errors import ConsanError
from consan.backends.base import Dim3, Handle
from consan.dataclass import dataclass
from consan.instrument.record import waiting_together
from consan.ranges import LaunchExtents
from consan.session.comparing.launch_memory import KnownAccesses, LaunchShape
from consan.session.comparing.pairs.awaited import AwaitedAccesses
from consan.session.executing.background import Background
from consan.session.executing.checked_kernels import FIRST_ONLY
from consan.session.executing.in_flight_launch import is_looked_at
from consan.session.executing.judging import Judge
from consan.session.executing.loading import Modules
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import LogShape, Prepared
from consan.session.planning.launch_sizes import too_many_together, too_many_warps

MOST_LOOKS: Final = 64  # launches of a kernel that take the form with global memory: one for each shape
FEW_LOOKS_AT_PAIRS: Final = 8  # launches of a shape, if the logs of one are too long for all of its CTAs to be compared at a time
LONGEST_LOOKS_AT_PAIRS: Final = 120.0  # seconds that more such launches may take
MOST_COMPARED: Final = 32  # of these, and of those that are compared with launches of other streams
LONGEST_COMPARED: Final = 4.0  # seconds that launches, or their checks beside the program, may take for a comparison with other streams
MOST_KNOWN: Final = 1 << 22  # accesses of launches whose parameters tell them
LONGEST_ALIKE: Final = 2.0  # more seconds for launches whose logs are those of earlier ones, where the report is incomplete without them
MOST_PENDING_PROOFS: Final = 1 << 12  # launches of different parameters that wait for their proof
LONGEST_PROOFS: Final = 10.0  # seconds that all of these proofs may take
BUSY: Final = "there was no room for their logs until earlier launches were checked"
_OfModule = tuple[int, str]
_Shape = tuple[Dim3, Dim3, Dim3]
NOTHING_LEFT: Final[Mapping[_OfModule, int]] = MappingProxyType({})


@dataclass(frozen=True)
class GlobalLook:
    """How the global memory of a launch is looked at. `whole`: the form of its module that records it; `args`: for a later proof.

    `known`: its accesses, which are those of an earlier one.
    """

    whole: Prepared | None = None
    proven: int = 0  # accesses
    args: Parameters | None = None
    known: KnownAccesses | None = None

    def form_of(self, launched: Prepared) -> Prepared:
        """The form whose sites its accesses name."""
        return launched if self.known is None else self.known.form


NONE: Final = GlobalLook()


@dataclass(frozen=True)
class PlacedLaunch:
    """A launch that only needs its place in the order. `look`: how its global memory is looked at, if it reaches memory of others."""

    shape: LaunchShape
    look: GlobalLook = NONE


@dataclass
class GlobalLooks:
    """The looks of one session. The caller holds the device."""

    modules: Modules
    judge: Judge
    background: Background
    seconds: float = 0.0  # that launches have taken whose accesses are recorded for a comparison with other streams
    alike_seconds: float = 0.0  # the same of those whose logs were those of earlier ones
    _alike: set[_OfModule] = field(default_factory=set)  # kernels whose last such launch was one of them
    _known: dict[Hashable, GlobalLook] = field(default_factory=dict)  # by kernel, extents and parameters
    _known_rows: int = 0  # of these
    _awaited: list[AwaitedAccesses] = field(default_factory=list)  # of launches beside whose checks the program went on
    _shapes: dict[_OfModule, set[_Shape]] = field(default_factory=dict)  # that had a launch
    _looks: dict[_OfModule, int] = field(default_factory=dict)
    _wholes: dict[tuple[int, Handle], Prepared] = field(default_factory=dict)  # by the framework's form: number, and as it is loaded
    _together: dict[int, frozenset[str]] = field(default_factory=dict)  # by module: kernels whose CTAs are checked together only
    _pending_proofs: dict[tuple[int, str, Dim3, Dim3, Parameters], int] = field(default_factory=dict)  # launches that have no proof yet
    _prepared: dict[int, Prepared] = field(default_factory=dict)  # of these

    def of(
        self, prepared: Prepared, launch: FrameworkLaunch, *, compared: bool = False, needed: bool = False, with_others: bool = False
    ) -> GlobalLook:
        """How to look at a launch that is about to be made. `compared`: with launches of other streams, if its accesses are kept.

        `needed`: the report is incomplete without. `with_others`: it may wait for a launch of another GPU that the program makes behind it.
        """
        if not self._may_look(prepared, launch.entry):
            return NONE
        shapes = self._shapes.setdefault((prepared.number, launch.entry), set())
        shape = launch.grid, launch.block, launch.cluster
        args = launch.args() if self.judge.proofs.may_prove(prepared, launch.entry) else None
        if with_others and self._polls(prepared, launch.entry):
            return NONE
        if compared and (known := self._known.get(self._decided(prepared, launch)) if needed else None) is not None:
            return known
        if compared and (whole := self._whole(prepared, launch, compared=True, needed=needed)) is not None:
            return GlobalLook(whole)
        if shape in shapes and not self.owes_pairs(prepared, launch):
            return GlobalLook(args=args)
        shapes.add(shape)
        proven = 0 if args is None else self.judge.proofs.accesses(prepared, launch.entry, args, LaunchExtents(launch.grid, launch.block))
        return GlobalLook(proven=proven) if proven else GlobalLook(self._whole(prepared, launch), args=args)

    def known(self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters | None) -> GlobalLook | None:
        """The look at a launch whose accesses are those of an earlier one."""
        return None if args is None else self._known.get(self._key(prepared, launch, args))

    def may_compare(self, prepared: Prepared, launch: FrameworkLaunch, *, needed: bool = False) -> bool:
        """Whether a launch is recorded for a comparison with other streams. `needed`: see `of`."""
        kernel = prepared.number, launch.entry
        alike = needed and kernel in self._alike and self.alike_seconds < LONGEST_ALIKE
        for each in [each for each in self._awaited if each.ended is not None]:
            self._awaited.remove(each)  # it has accesses
            self.seconds += each.seconds
        seconds = self.seconds + sum(each.seconds for each in self._awaited)
        spent = not alike and (self._looks.get(kernel, 0) >= MOST_COMPARED or seconds > LONGEST_COMPARED)
        return self._may_look(prepared, launch.entry) and not (spent or self._too_large(prepared, launch))

    def put_off(self, prepared: Prepared, launch: FrameworkLaunch) -> GlobalLook:
        """A launch had no room for the log that it was to have: a later one of its shape is looked at."""
        self._looks[prepared.number, launch.entry] -= 1
        self._shapes[prepared.number, launch.entry].discard((launch.grid, launch.block, launch.cluster))
        return NONE

    def compared(self, prepared: Prepared, launch: FrameworkLaunch, seconds: float | AwaitedAccesses) -> None:
        """A launch that was recorded for a comparison has taken some seconds, or its check takes some."""
        kernel = prepared.number, launch.entry
        if isinstance(seconds, AwaitedAccesses):
            self._awaited.append(seconds)
            return
        if self.judge.recording.accesses.alike:
            self._alike.add(kernel)
            self.alike_seconds += seconds
        else:
            self._alike.discard(kernel)
            self.seconds += seconds
        self._keep_known(prepared, launch)

    def _keep_known(self, prepared: Prepared, launch: FrameworkLaunch) -> None:
        """A launch had no finding: those with the same parameters have its accesses. What they store is not known."""
        accesses, key = self.judge.recording.accesses, self._decided(prepared, launch)
        known = KnownAccesses.of(accesses.last, self._form(prepared)) if key is not None and accesses.plain else None
        if known is not None and self._known_rows + len(known.retained.rows) <= MOST_KNOWN:
            self._known[key] = GlobalLook(known=known)
            self._known_rows += len(known.retained.rows)

    def _decided(self, prepared: Prepared, launch: FrameworkLaunch) -> Hashable | None:
        """Equal for launches with the same accesses. None: not only text, extents and parameters decide these, or they are not known."""
        args, extents = launch.args(), LaunchExtents(launch.grid, launch.block)
        touched = None if args is None or prepared.chains else self.judge.proofs.touched(prepared, launch.entry, args, extents)
        if args is None or touched is None or not touched.certain:
            return None
        return self._key(prepared, launch, args)

    @staticmethod
    def _key(prepared: Prepared, launch: FrameworkLaunch, args: Parameters) -> Hashable:
        return prepared.number, launch.module, launch.entry, launch.grid, launch.block, launch.cluster, tuple(args)

    def _polls(self, prepared: Prepared, entry: str) -> bool:
        """Whether a kernel may wait for another launch; it cannot while the host waits for it."""
        recorded = self._form(prepared).recorded
        return recorded is None or entry in recorded.refused or recorded.kernel(entry).polls

    def owes_pairs(self, prepared: Prepared, launch: FrameworkLaunch) -> bool:
        """Whether earlier launches of a shape have left pairs of sets of CTAs to later ones (checker/logs/shares.py).

        Not while one of them is checked: what that one leaves is not known yet.
        """
        whole = self._wholes.get((prepared.number, prepared.handle)) if prepared.handle is not None else None
        if whole is None:
            return False
        extents = launch.grid, launch.block, launch.cluster
        if is_looked_at(list(self.background.sent), whole.number, launch.entry, extents):
            return False
        return self.owes(whole, (whole.number_of(launch.entry), *extents))

    def owes(self, whole: Prepared, shape: LogShape) -> bool:
        """The same for launches of the form that records global memory."""
        pairs = whole.logs.slices.get(shape) or self.judge.recording.pairs.of((whole.number, *shape))
        if pairs is None or not pairs.left:
            return False
        return pairs.looks < FEW_LOOKS_AT_PAIRS or pairs.seconds < LONGEST_LOOKS_AT_PAIRS

    def made(self, prepared: Prepared, launch: FrameworkLaunch, look: GlobalLook) -> None:
        """Count a launch of the framework's form."""
        recording, entry = self.judge.recording, launch.entry
        if look.known is not None:
            recording.accesses.last = look.known.retained
            recording.kernels.counts_proven(prepared, entry, 0, launch.grid)
        elif look.proven:
            recording.kernels.counts_proven(prepared, entry, look.proven, launch.grid)
        elif look.args is not None:
            self.counts(prepared, launch, look.args)

    def counts(self, prepared: Prepared, launch: FrameworkLaunch, args: Parameters, times: int = 1) -> None:
        """Count launches with these parameters, which have no proof yet."""
        pending_proofs = prepared.number, launch.entry, launch.grid, launch.block, args
        before = self._pending_proofs.get(pending_proofs, 0)
        if not before and len(self._pending_proofs) >= MOST_PENDING_PROOFS:
            self.settle()
        self._pending_proofs[pending_proofs] = before + times
        self._prepared[prepared.number] = prepared

    def may_tell(self, prepared: Prepared, entry: str) -> bool:
        """Whether the parameters of later launches of a shape may prove that their accesses are apart."""
        return self._may_look(prepared, entry) and self.judge.proofs.may_prove(prepared, entry)

    def _may_look(self, prepared: Prepared, entry: str) -> bool:
        """Whether a launch of the framework's form does not record the global memory that is asked for."""
        recorded = prepared.recorded
        wanted = self.judge.recording.options.global_wanted
        return wanted and recorded is not None and not recorded.has_global(entry) and not prepared.logs.slow

    def settle(self, left: Mapping[_OfModule, int] = NOTHING_LEFT) -> None:
        """Make the proofs that are owed. `left`: launches without room for their logs, where none of the shape was recorded."""
        kernels, used = self.judge.recording.kernels, self.modules.used
        for (number, entry), count in left.items():
            kernels.lacks_record(used[number], entry, BUSY, count - kernels.unrecorded(used[number], entry).get(BUSY, 0))
        until = time.monotonic() + LONGEST_PROOFS
        for (number, entry, grid, block, args), times in self._pending_proofs.items():
            if time.monotonic() > until:
                break
            prepared = self._prepared[number]
            if proven := self.judge.proofs.accesses(prepared, entry, args, LaunchExtents(grid, block)):
                self.judge.recording.kernels.counts_proven(prepared, entry, proven, grid, times)
                self.judge.recording.kernels.shapes.ran(prepared.plain, entry, grid, block, looked=True)
        self._pending_proofs.clear()
        self._prepared.clear()

    def forget(self) -> None:
        """Start anew, for the next report."""
        self.seconds = self.alike_seconds = 0.0
        self._alike.clear()
        self._known.clear()
        self._known_rows = 0
        self._awaited.clear()
        self._shapes.clear()
        self._looks.clear()
        self._pending_proofs.clear()

    def _whole(self, prepared: Prepared, launch: FrameworkLaunch, *, compared: bool = False, needed: bool = False) -> Prepared | None:
        """The form of a module that records global memory too, for a launch. None: the report says why, unless it is `compared` too."""
        kernel = prepared.number, launch.entry
        looks, whole = self._looks.get(kernel, 0), None
        spent = not self.may_compare(prepared, launch, needed=needed) if compared else looks >= MOST_LOOKS
        why = self._too_large(prepared, launch) or (FIRST_ONLY if spent else "")
        if not why:
            try:
                whole = self._form(prepared)
                why = self._refuses(whole, launch)
            except ConsanError as error:  # the program goes on with the form that it has
                why = f"the form that records it cannot be made: {str(error).partition(chr(10))[0]}"
        if why or whole is None:
            if not compared:
                self.judge.recording.kernels.lacks_global_races(prepared, launch.entry, why)
            return None
        whole.address_name, whole.logs.unrepeatable = prepared.address_name, True
        self._looks[kernel] = looks + 1 if not compared else max(looks, min(looks + 1, MOST_COMPARED))  # others may have other shapes
        return whole

    def _too_large(self, prepared: Prepared, launch: FrameworkLaunch) -> str:
        """Why a launch is too large; empty if it is not."""
        ctas, threads = math.prod(launch.grid), math.prod(launch.block)
        if why := too_many_warps(ctas, threads):
            return why
        if prepared.number not in self._together:
            self._together[prepared.number] = waiting_together(prepared.instrumented.module)
        waits = launch.entry in self._together[prepared.number]
        return too_many_together(ctas, threads) if waits else ""

    def _form(self, prepared: Prepared) -> Prepared:
        """The form that records global memory, loaded."""
        form = prepared.number, prepared.handle
        if form not in self._wholes:
            self._wholes[form] = self.modules.with_global_races(prepared)
        return self._wholes[form]

    def _refuses(self, whole: Prepared, launch: FrameworkLaunch) -> str:
        """Why a launch does not take the form; empty if it does."""
        assert whole.recorded is not None
        if why := whole.recorded.refused.get(launch.entry):
            return why
        if whole.recorded.kernel(launch.entry).polls:  # no CTA may wait for one that has no place
            ctas, threads = math.prod(launch.grid), math.prod(launch.block)
            room = self.judge.device.backend.resident_ctas(whole.loaded, launch.entry, threads, launch.shared)
            if room is not None and ctas > room:
                return f"{ctas:,} CTAs that may wait for each other cannot all be resident when it is recorded ({room:,} can)"
        return "its replays take long" if whole.logs.slow else ""
