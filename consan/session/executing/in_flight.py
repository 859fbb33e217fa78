"""Recorded launches beside which the program goes on, what those with one receipt did, and launches that repeat.

A launch that does what an earlier one of its shape has done, in the same stream, takes a slot: memory for its log with a slip, and the
work around it, which is prepared once. If its receipt is equal to the known one it is counted, and the slot serves again. All else is
left to `Background`: a launch with another receipt, one that runs for long, and one for which no slot is free.
"""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from consan.backends.armed import MOST_SLOTS, AlikeLaunches, ArmedSlot, Lent, MadeLaunches
from consan.backends.base import THREAD_STREAM, Around, DeviceLost, LaunchWork
from consan.checker.logs.receipts import NUMBER, RESULTS, SLIPS, SUMS, Receipt, Slip
from consan.dataclass import dataclass
from consan.session.executing.in_flight_launch import NOT_LIKE, InFlightLaunch, ReceiptGroup, Shape, StreamKey, shape_but_log
from consan.session.executing.launch_check import LaunchCheck
from consan.session.modules.parameters import Parameters
from consan.session.modules.prepared import Prepared
from consan.session.planning.decided import DecidedLaunches

if TYPE_CHECKING:
    from consan.session.executing.background import Background

MOST_OUT: Final = SLIPS  # launches of one shape without a receipt: the host waits for the first then, and for no check
_MOST_OUT_ARMED: Final = 2  # where more are, the host is ahead of the device: C would find no slot
_ALL_ENDED: Final = bytes(8)  # in a receipt: no thread has not exited


class Slot:
    """Memory of a launch, and its slip. `owner`: whose launches use it; `stream`: of its last launch."""

    __slots__ = ("around", "owner", "said", "slip", "started", "stream", "symbol", "words")

    def __init__(self, owner: Repeats, started: LaunchCheck, slip: Slip, around: Around) -> None:
        assert started.memory is not None
        self.owner, self.started, self.slip, self.around, self.stream = owner, started, slip, around, owner.stream
        view = slip.view.data
        self.words, self.said = view.cast("Q"), view[SUMS : RESULTS + started.memory.result_bytes]
        self.symbol = started.memory.symbol_addresses[0]

    @classmethod
    def made(cls, owner: Repeats, started: LaunchCheck) -> Slot | None:
        """A slot of this memory. None: the backend cannot prepare the work around launches."""
        memory, work, receipts = started.memory, owner.background.work, owner.background.device.receipts
        assert memory is not None
        slip = receipts.spare()
        copies = [(address, slip.given(at, data)) for at, address, data in memory.variables()]
        around = work.around(LaunchWork(memory.pieces.to_clear, copies, slip.begun, slip.ended, *receipts.kernel(slip, *memory.receipt_of)))
        if around is None:
            receipts.free.append(slip)
            return None
        return cls(owner, started, slip, around)


@dataclass(eq=False, repr=False)
class Repeats(AlikeLaunches["Slot"]):
    """The launches of one shape in one stream that do what `account` has. `receipt`: theirs, behind its number."""

    background: Background
    prepared: Prepared
    shape: Shape
    stream: StreamKey
    account: ReceiptGroup
    receipt: bytes
    alive: bool = True
    is_steady: bool = False  # the module's last two launches were of these
    times: dict[Parameters | None, int] = field(default_factory=dict)
    _last: Slot | None = None
    _free: list[Slot] = field(default_factory=list)
    _out: deque[Slot] = field(default_factory=deque)

    @property
    def lock(self) -> threading.RLock:  # type: ignore[override]
        """The lock of the launches in flight."""
        return self.background.lock

    def begin(self) -> Slot | None:
        """Put into the stream what comes before the kernel. None: this launch is made otherwise."""
        background = self.background
        if not self._has_slot():
            if background.device.backend.capturing(self.stream[0]):
                return None
            background.repeating.adds_slots(self)
        with background.lock:
            if not (self.alive and self._free):
                return None
            slot = self._free[-1]
            background.repeating.take_back(slot.symbol)
            before = background.last.get(slot.symbol)
            try:
                if before is not None and before.stream != self.stream and not self._comes_after(before):
                    return None
                made = slot.around.before(self.stream[0], copies=before is None or before.started is not slot.started)
            except DeviceLost as error:
                background.lost(error)
                return None
            if not made:
                return None
            self._free.pop()
            self.is_steady, self._last = before is not None and before is self._last, slot
            background.last[slot.symbol] = slot
            return slot

    def lends(self) -> Lent[Slot] | None:
        """All slots. None: the next launch may need Python."""
        slots, last = [*self._free, *self._out], self._last
        if not (self.alive and self.is_steady and last in slots) or len(self._out) > _MOST_OUT_ARMED or len(slots) > MOST_SLOTS:
            return None
        if self.background.last.get(last.symbol) is not last:  # another launch has changed the module's variables since
            return None
        numbers = [0] * len(self._free) + [slot.slip.number for slot in self._out]
        given = [ArmedSlot(slot.around.address, slot.slip.host_address, number) for slot, number in zip(slots, numbers, strict=True)]
        return Lent(slots, given, slots.index(last), self.receipt)

    def lent(self) -> None:
        """C has all slots."""
        self._free, self._out = [], deque()

    def taken_back(self, taken: Sequence[Slot], made: MadeLaunches) -> None:
        """Take the slots back, but for that of a launch which is made now."""
        last = self._last = self.background.last[taken[made.last].symbol] = taken[made.last]
        for slot, number in zip(taken, made.numbers, strict=True):
            slot.slip.number = number or slot.slip.number
        out = [slot for slot, number in zip(taken, made.numbers, strict=True) if number]
        free = [slot for at, slot in enumerate(taken) if slot not in out and at != made.busy]
        self._out.extend(sorted(out, key=lambda slot: slot.slip.number))
        self._free.extend(sorted(free, key=lambda slot: slot is last))
        self.account.more += made.equal
        try:
            last.around.check(made.status)
        except DeviceLost as error:
            self.background.lost(error)

    def _comes_after(self, before: InFlightLaunch | Slot) -> bool:
        """Let the stream wait for a launch in another one. False: it is captured."""
        work, stream = self.background.work, self.stream[0]
        if self.background.device.backend.capturing(stream):
            return False
        if before.slip is not None:
            with work.entered():
                work.after(before.slip.ended, stream)
        return True

    def _has_slot(self) -> bool:
        """Look at the receipts. Returns whether a slot is free: the one that was used last comes first."""
        with self.background.lock:
            self.take_back()
            out, free = self._out, self._free
            while out and out[0].words[NUMBER // 8] == out[0].slip.number:
                slot = out.popleft()
                if slot.said.tobytes() == self.receipt:
                    self.account.more += 1
                    free.append(slot)
                else:
                    self.background.repeating.differs(self, slot)
            return bool(free)

    @property
    def is_outdated(self) -> bool:
        """Whether later launches of its shape have logs of another length, or are sampled."""
        _, _, entry, grid, block, cluster, length, _ = self.shape
        logs = self.prepared.logs
        return logs.slow or logs.length((self.prepared.number_of(entry), grid, block, cluster)) != length

    @property
    def is_full(self) -> bool:
        """Whether no more launches may be without a receipt."""
        return len(self._out) >= MOST_OUT

    def add(self, started: LaunchCheck) -> bool:
        """Take the memory of a launch that is over. Returns whether it serves."""
        slot = Slot.made(self, started)
        if slot is not None:
            self._free.append(slot)
        return slot is not None

    def ended(self, taken: Slot) -> None:
        """Put into the stream what comes behind the kernel."""
        slot = taken
        background = self.background
        with background.lock:
            number = background.device.receipts.number(slot.slip)
            if self.alive:
                self._out.append(slot)
            else:
                background.take(self.taken_out(slot))
            background.device.unsettled = background.settle
            try:
                slot.around.behind(self.stream[0], number)
            except DeviceLost as error:
                background.lost(error)
        background.time_limit.begin()

    def left(self, taken: Slot) -> None:
        """The slot serves the next launch."""
        self._free.append(taken)
        if not self.alive:
            self.background.repeating.empty_slots([self])

    def taken_out(self, slot: Slot) -> InFlightLaunch:
        """The launch of a slot, which is no more."""
        return InFlightLaunch(self.prepared, self.shape, slot.started, self.stream, slot.slip)

    def without_receipt(self) -> list[Slot]:
        """Give up the slots whose receipts nobody has seen."""
        self.take_back()
        found = list(self._out)
        self._out.clear()
        return found

    def idle(self) -> list[Slot]:
        """Give up the slots that no launch uses."""
        self.take_back()
        found, self._free[:] = list(self._free), ()
        return found


@dataclass(eq=False, repr=False)
class Repeating:
    """Those of one session. Work that they cannot do is left to `background`."""

    background: Background
    on_left: Callable[[], None] = lambda: None  # later launches of a shape are to be looked at, too; a thread of consan's calls it
    # The last receipt that served, behind its number, unless it has findings other than notes.
    _usual: dict[Shape, tuple[bytes, ReceiptGroup]] = field(default_factory=dict)
    _repeats: dict[tuple[Shape, StreamKey], Repeats] = field(default_factory=dict)
    # For kernels in which nothing but parameters decides what a launch does: what their launches did, by the bytes that decide.
    _decided: dict[tuple[Hashable, ...], DecidedLaunches[ReceiptGroup]] = field(default_factory=dict)

    def take_back(self, symbol: int) -> None:
        """Another launch is to use the variables of a module. The caller holds the lock."""
        last = self.background.last.get(symbol)
        if isinstance(last, Slot):
            last.owner.take_back()

    def serves(self, shape: Shape, receipt: Receipt, account: ReceiptGroup) -> None:
        """A launch has a receipt that an earlier one had, too."""
        if account.tells_each:
            self._usual.pop(shape, None)
            return
        self._usual[shape] = receipt.sums + _ALL_ENDED + receipt.results, account

    def concluded(self, sent: InFlightLaunch, account: ReceiptGroup) -> None:
        """A launch was checked: what those do that have its deciding bytes is known, if it has no findings but notes."""
        decides = sent.memory.decided_by
        if decides is not None and account.serves_alike():
            self._decided.setdefault(shape_but_log(sent.shape), DecidedLaunches(decides)).add(sent.memory.constants(), account)

    def decided(self, shape: Shape) -> DecidedLaunches[ReceiptGroup] | None:
        """The launches of a shape whose parameters decide their accesses; None while none is known."""
        return self._decided.get(shape_but_log(shape))

    def of(self, prepared: Prepared, shape: Shape, stream: int) -> Repeats | None:
        """The launches of a shape that do what an earlier one did; None while there is none, or it had findings."""
        background = self.background
        if shape not in self._usual or stream == THREAD_STREAM or background.work.vanishes:
            return None
        receipt, account = self._usual[shape]
        with background.lock:
            key = shape, (stream, 0)
            found = self._repeats.get(key)
            if found is not None and found.account is not account:
                self._retire([found])
                found = None
            if found is None:
                found = self._repeats[key] = Repeats(background, prepared, *key, account, receipt)
            return found

    def differs(self, repeats: Repeats, slot: Slot) -> None:
        """A launch has another receipt than those before it."""
        sent = repeats.taken_out(slot)
        self.background.sent.append(sent)
        self.background.received(sent)
        self.background.look()

    def adds_slots(self, repeats: Repeats) -> None:
        """Find memory for the next launch, if there is some. Where many launches have no receipt, wait for the first."""
        background = self.background
        if repeats.is_full and self.take_out():
            for first in background.out[:1]:
                background.wait(first, background.out)
        background.look()
        with background.lock:
            spare = background.spare.get(repeats.shape, [])
            if spare and repeats.add(spare[-1]):
                spare.pop()
            if not spare:
                background.spare.pop(repeats.shape, None)

    def take_out(self, of: Iterable[Repeats] | None = None) -> bool:
        """Leave launches without a receipt to `background`: all, or those of some. Returns whether there are some."""
        background = self.background
        with background.lock:
            found = [(slot.slip.number, each, slot) for each in of or self._repeats.values() for slot in each.without_receipt()]
            for _, each, slot in sorted(found, key=operator.itemgetter(0)):
                background.take(each.taken_out(slot))
            return bool(found)

    def left_out(self) -> list[InFlightLaunch]:
        """All launches without a receipt."""
        self.take_out()
        return list(self.background.out)

    def empty_slots(self, of: Iterable[Repeats] | None = None) -> bool:
        """Take back the memory that no launch uses. Returns whether there is some."""
        background = self.background
        with background.lock:
            found = [(each, slot) for each in of or self._repeats.values() for slot in each.idle()]
            for each, slot in found:
                background.device.receipts.free.append(slot.slip)
                background.spare.setdefault(each.shape, []).append(slot.started)
            return bool(found)

    def counts_like(self, sent: InFlightLaunch, times: int = 0) -> None:
        """Launches were made like one that was checked then. They count as it does, once that is known."""
        with self.background.lock:
            sent.like += times
            if sent in self.background.sent or not sent.like:
                return
            times, sent.like = sent.like, 0
            if sent.account is not None and sent.account.stands_for_like():
                self.background.counts(sent.account, times)
            else:
                self.background.judge.recording.kernels.lacks_record(sent.prepared, sent.entry, NOT_LIKE, times)

    def retire(self) -> None:
        """Make all launches otherwise from now on."""
        self._retire(list(self._repeats.values()))

    def retire_outdated(self, prepared: Prepared) -> None:
        """The same for those of a module whose later launches have logs of another length, or are sampled."""
        self._retire([each for each in self._repeats.values() if each.prepared is prepared and each.is_outdated])

    def _retire(self, old: list[Repeats]) -> None:
        with self.background.lock:
            if old:
                self.take_out(old)
                self.empty_slots(old)
            for each in old:
                each.alive = False
                del self._repeats[each.shape, each.stream]

    def forget(self) -> None:
        """Start afresh after a report."""
        self.retire()
        self._usual.clear()
        self._decided.clear()
