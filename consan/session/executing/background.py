"""Recorded launches beside which the program goes on: the host does not wait for their kernels.

In the stream of such a launch its memory is cleared and its module is given the launch's variables; behind the kernel comes a receipt
(checker/logs/receipts.py). The host looks at receipts when the program makes its next launches. A launch with a receipt that an earlier
one of the kernel had did the same: it is counted, and its memory serves the next one. New launches are checked in a thread, and concluded
in the order in which they were made, all before a report, and before a launch that the host waits for. A launch whose global memory is
recorded is checked by itself, and concluded by itself: its check may take long.

The host waits for kernels where all slips or too many logs are in use. For checks it waits some seconds in all, and only for the first
launches of a shape: where there is no room for a log until a check is over, a launch runs as it is. It also waits for the first launch of
each shape where the program may end before consan does, and its memory with it: a crash must not lose the first launch of a shape.

Not handled: a fault of a kernel that is not recorded and runs between recorded ones. The report cannot tell which of them it was.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Collection, Hashable, Iterator
from dataclasses import field
from queue import PriorityQueue
from typing import Final

from consan._errors import InternalError
from consan.backends.base import THREAD_STREAM, DeviceLost, StreamWork
from consan.checker.logs.pieces import LogForm
from consan.checker.logs.receipts import MOST_RESULTS
from consan.dataclass import dataclass
from consan.session.comparing.pairs.awaited import AwaitedAccesses
from consan.session.executing.in_flight import Repeating, Slot
from consan.session.executing.in_flight_launch import CheckInTurn, InFlightLaunch, ReceiptGroup, Shape, StreamKey, next_ones
from consan.session.executing.judging import Judge
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.time_limit import TimeLimit
from consan.session.executing.watch import SessionWatch
from consan.session.modules.device import Device
from consan.session.modules.parameters import Asked
from consan.session.modules.prepared import Prepared
from consan.session.planning.switches import SWITCHES

MOST_KNOWN: Final = 1 << 12  # receipts
LONGEST_WAITED: Final = 4.0  # seconds that the host waits for checks
_ORDER: Final = itertools.count()
_SHORTEST_NAP, _LONGEST_NAP = 20e-6, 2e-3  # seconds


@dataclass
class Background:
    """The launches of one session."""

    device: Device
    judge: Judge
    watch: SessionWatch
    sent: deque[InFlightLaunch] = field(default_factory=deque)  # in their order
    out: list[InFlightLaunch] = field(default_factory=list)  # those whose receipts have not come
    _known: dict[Hashable, ReceiptGroup] = field(default_factory=dict)
    _counted: dict[Hashable, ReceiptGroup] = field(default_factory=dict)  # those that serve, by all of a receipt
    spare: dict[Shape, list[LaunchCheck]] = field(default_factory=dict)  # ready for the next launch
    _bytes: dict[Shape, int] = field(default_factory=dict)  # of their logs
    last: dict[int, InFlightLaunch | Slot] = field(default_factory=dict)  # by the address of its module's variable
    lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: set[Shape] = field(default_factory=set)  # of a program that may end at any time
    _checks: PriorityQueue[CheckInTurn] | None = None

    def __post_init__(self) -> None:
        self.judge.settle, self.device.free_idle = self.settle, self._free_idle
        self.repeating = Repeating(self)
        self.time_limit = TimeLimit(self.device, self.watch, self.repeating.left_out, self._left, self.lock)

    @property
    def work(self) -> StreamWork:
        """Work in the program's streams."""
        work = self.device.backend.work
        assert work is not None
        return work

    def accepts(self, prepared: Prepared, entry: str, *, repeats: bool = True) -> bool:
        """Whether the program goes on beside a launch of a kernel. `repeats`: and launches like it, with one receipt, do the same."""
        recorded, recording = prepared.recorded, self.judge.recording
        if recorded is None or self.device.backend.work is None or self.device.lost or self.judge.keeper is not None:
            return False
        beyond, whole = recorded.kernel(entry).silent or entry in recorded.refused, recorded.has_global(entry)
        if (repeats and whole) or not recorded.leaves or recording.asks_all or beyond or (whole and prepared.fetches(entry)):
            return False
        return not recorded.compact or LogForm.of(recorded, prepared.number_of(entry)).result_bytes <= MOST_RESULTS

    def idle(self, shape: Shape, *, alone: bool, first: bool) -> tuple[LaunchCheck | None, bool]:
        """The memory of an earlier launch of this shape, and whether that, or new memory, has room. `alone`: it is looked at by itself."""
        while True:
            self.look()
            if self.device.receipts.free:
                if idle := self.spare.get(shape):
                    return idle.pop(), True
                if self.has_room(self._bytes.get(shape, 0), alone=alone):
                    return None, True
            if self.device.lost or not (self.sent or self.repeating.take_out()):
                return None, True
            if out := self.out[:1]:
                self.wait(out[0], self.out)
            elif not first or self.time_limit.waited >= LONGEST_WAITED:
                return None, False
            else:
                self.time_limit.waited += self.wait(next_ones(self.sent)[0], most=LONGEST_WAITED - self.time_limit.waited)

    def has_room(self, nbytes: int, *, alone: bool) -> bool:
        """Whether the logs of one more launch fit, if need be in place of those that no launch uses. `alone`: as `idle` has it."""
        logs, by_itself = self.device.logs, sum(sent.memory.log_bytes for sent in self.sent if sent.by_itself and not sent.is_decided)
        most = (pool := self.judge.recording.pool_bytes) - nbytes
        while logs.used - by_itself > most and (self.spare or self.repeating.empty_slots()):
            self._free_one()
        return by_itself <= pool if alone else logs.used - by_itself <= most

    @contextlib.contextmanager
    def launched(self, prepared: Prepared, shape: Shape, started: LaunchCheck, stream: int, asked: Asked) -> Iterator[None]:
        """Inside the block the framework launches. `asked`: reads its parameters."""
        sent = self._begun(prepared, shape, started, (stream, threading.get_ident() if stream == THREAD_STREAM else 0))
        if sent is not None and sent.memory.decided_by:
            sent.args = asked()
        try:
            yield
        except BaseException:
            if sent is not None:
                sent.void = True
            raise
        finally:
            if sent is not None:
                self._ended(sent)

    def settle(self) -> None:
        """Wait until all launches are concluded."""
        self.repeating.retire()
        while self.sent:
            self.wait(self.sent[-1])
        self._free_idle()
        self._tell_counts()
        self.device.unsettled = None

    def forget(self) -> None:
        """Start afresh after a report: what later launches do is new again."""
        self.repeating.forget()
        self._known.clear()
        self._counted.clear()

    def _begun(self, prepared: Prepared, shape: Shape, started: LaunchCheck, stream: StreamKey) -> InFlightLaunch | None:
        """Put into the stream what comes before the kernel. None: the device is lost."""
        work, slip = self.work, self.device.receipts.take()
        sent = InFlightLaunch(prepared, shape, started, stream, slip)
        memory, accesses = sent.memory, self.judge.recording.accesses
        self._bytes[shape] = memory.log_bytes
        if accesses.later and sent.by_itself:
            sent.awaited = accesses.awaited = AwaitedAccesses()
        try:
            with self.lock:
                self.repeating.take_back(memory.symbol_addresses[0])
            with work.entered():
                before = self.last.get(memory.symbol_addresses[0])
                if before is not None and before.slip is not None and before.stream != stream:  # it has the module's variables
                    work.after(before.slip.ended, stream[0])
                for address, nbytes in memory.pieces.to_clear:
                    work.clear(address, nbytes, stream[0])
                if before is None or before.started is not started:  # else the variables are the same
                    for at, address, data in memory.variables():
                        work.copy(address, slip.given(at, data), stream[0])
                work.mark(slip.begun, stream[0])
        except DeviceLost as error:
            self.lost(error)
            return None
        self.last[memory.symbol_addresses[0]] = sent
        return sent

    def _ended(self, sent: InFlightLaunch) -> None:
        """Put into the stream what comes behind the kernel."""
        work, slip = self.work, sent.slip
        assert slip is not None
        with self.lock:
            self.sent.append(sent)
            self.out.append(sent)
            self.device.unsettled = self.settle
            try:
                with work.entered():
                    self.device.receipts.ask(slip, *sent.memory.receipt_of, sent.stream[0])
                    work.mark(slip.ended, sent.stream[0])
            except DeviceLost as error:
                self.lost(error)
                return
        self.time_limit.begin()
        if work.vanishes and sent.shape not in self._seen:
            self._seen.add(sent.shape)
            self.wait(sent)

    def look(self) -> None:
        """Take the receipts that have come, and conclude what can be."""
        with self.lock:
            for sent in [sent for sent in self.out if sent.hangs or not sent.is_out]:
                self.out.remove(sent)
                self.received(sent)
            while (first := next(filter(self._has_decided, next_ones(self.sent)), None)) is not None:
                self.sent.remove(first)
                self._conclude(first)
                self.repeating.counts_like(first)

    def take(self, sent: InFlightLaunch) -> None:
        """Take over a launch whose receipt has not come."""
        self.sent.append(sent)
        self.out.append(sent)

    def received(self, sent: InFlightLaunch) -> None:
        """Take a receipt: the launch did what an earlier one did, or is checked."""
        memory, slip = sent.memory, sent.slip
        assert slip is not None
        sent.slip = None
        receipt = None if sent.hangs else slip.read(memory.result_bytes)
        self.device.receipts.free.append(slip)
        if sent.void:
            self._keep(sent)
            return
        memory.received(b"" if receipt is None else receipt.results)
        if receipt is None or receipt.unended or sent.started.ending.stopped or sent.by_itself:
            self._examine(sent, ReceiptGroup())
            return
        whole = sent.shape[1:], memory.lines, receipt
        sent.account = self._counted.get(whole) or self._known.get(sent.key(receipt))
        if sent.account is None:
            self._examine(sent, self._new_account(sent.key(receipt)))
        elif sent.account.is_known and sent.account.serves():
            self._counted[whole] = sent.account
            self.repeating.serves(sent.shape, receipt, sent.account)
            self._keep(sent)

    def _new_account(self, key: Hashable) -> ReceiptGroup:
        if len(self._known) >= MOST_KNOWN or len(self._counted) >= MOST_KNOWN:
            self._tell_counts()
            self.forget()
        return self._known.setdefault(key, ReceiptGroup())

    def _keep(self, sent: InFlightLaunch) -> None:
        """Keep the memory of a launch for the next one."""
        sent.retained = True
        if self.device.logs.used > self.judge.recording.pool_bytes:
            sent.started.free()
        else:  # the last one that a launch has used is the last one
            self.spare[sent.shape] = [*self.spare.pop(sent.shape, []), sent.started]

    def _free_idle(self) -> None:
        while self.spare or self.repeating.empty_slots():
            self._free_one()

    def _free_one(self) -> None:
        """Free the memory of the shape that had no launch for longest."""
        for started in self.spare.pop(next(iter(self.spare))):
            if not self.device.lost:
                started.free()

    def _has_decided(self, sent: InFlightLaunch) -> bool:
        """Whether the first launch can be concluded. If another one turns out not to stand for it, it is checked."""
        account = sent.account
        if account is not None and account.examined is not None and not (sent.examined or account.serves()):
            self._examine(sent, ReceiptGroup())
        return sent.is_decided

    def _examine(self, sent: InFlightLaunch, account: ReceiptGroup) -> None:
        """Check a launch in the thread."""
        sent.account, sent.examined, account.first = account, True, sent
        if self._checks is None:
            self._checks = PriorityQueue()  # its thread is a daemon: the end of the program waits for the others
            threading.Thread(target=self._check, args=(self._checks,), daemon=True, name="consan-checks").start()
        self._checks.put((sent.by_itself, next(_ORDER), sent, account))

    def _check(self, checks: PriorityQueue[CheckInTurn]) -> None:
        while True:
            self._examined(*checks.get()[2:])

    def _examined(self, sent: InFlightLaunch, account: ReceiptGroup) -> None:
        try:
            with SWITCHES.often(), self.device.backend.outside_captures():
                examined = sent.compares(lambda: self.judge.examined(sent.prepared, sent.entry, sent.started))
                account.examined = examined
                if not self.device.lost:
                    sent.started.free()
                if sent.by_itself and not examined.checked.compares_all_pairs:
                    self.repeating.on_left()
        except Exception as error:  # _conclude reports it
            account.error = error
        finally:
            account.over.value = 1

    def _conclude(self, sent: InFlightLaunch) -> None:
        """Tell what a launch did."""
        account = sent.account
        if sent.awaited is not None:
            sent.awaited.come(None)  # they will not, unless they have
        if sent.void or account is None:
            return
        if isinstance(account.error, DeviceLost) and not self.device.lost:
            self.lost(account.error)
        if account.error is not None and self.device.lost:
            self.judge.loses(sent.entry)
            return
        if account.examined is None:
            why = "; ".join(str(account.error).splitlines()) or type(account.error).__name__
            self.watch.reasons[f"{sent.entry}: a launch was not checked: {why}"] = None
            return
        if sent.examined:
            self.repeating.retire_outdated(sent.prepared)
            account.only_notes = self.judge.concluded(sent.prepared, sent.entry, sent.started, account.examined)
            self.repeating.concluded(sent, account)
            return
        if not sent.retained:
            self._keep(sent)
        account.more += 1
        if account.tells_each:
            self._tell_count(account)

    def _tell_counts(self) -> None:
        """Count the launches that did what others did."""
        for account in {**self._known, **self._counted}.values():
            self._tell_count(account)

    def counts(self, account: ReceiptGroup, times: int) -> None:
        """Count launches that did what others did, and have no receipts."""
        with self.lock:
            account.more += times
            self._tell_count(account)

    def _tell_count(self, account: ReceiptGroup) -> None:
        times, account.more = account.more, 0
        if times and account.examined is not None and account.first is not None:
            first = account.first
            self.judge.repeated(first.prepared, first.entry, first.started, account.examined.checked, times)

    # -- waiting -----------------------------------------------------------------------------------------------------------

    def wait(self, sent: InFlightLaunch, among: Collection[InFlightLaunch] | None = None, *, most: float = math.inf) -> float:
        """Wait until a launch is concluded, or is not among some any more, so many seconds at most. Gives how many it were."""
        began, among = time.monotonic(), self.sent if among is None else among
        try:
            while sent in among and time.monotonic() < began + most:
                self.look()
                for first in self.out[:1]:
                    self._ask_device(first)
                time.sleep(min(max(_SHORTEST_NAP, (time.monotonic() - began) / 20), _LONGEST_NAP))
        except KeyboardInterrupt:
            with self.lock:
                for each in self.out:
                    self.watch.unfinished(each.entry, "interrupted")
                self.out.clear()
                self.sent.clear()
            raise
        return time.monotonic() - began

    def _ask_device(self, sent: InFlightLaunch) -> None:
        """Find out whether the device is lost, or has passed a launch without a receipt, while a receipt does not come."""
        slip = sent.slip
        if self.device.lost:
            with self.lock:
                self._give_up(DeviceLost("the device is lost", code=0, name="the loss of the device"))
        if slip is None or not sent.is_out or self.device.lost:
            return
        try:
            with self.work.entered():
                passed = self.work.passed(slip.ended)
        except DeviceLost as error:
            self.lost(error)
            return
        if passed and sent.is_out:
            with self.lock:
                self.out.remove(sent)
                sent.slip, sent.examined = None, True
                sent.account = ReceiptGroup.failed(InternalError("its receipt did not come"))

    def lost(self, error: DeviceLost) -> None:
        """The device is lost: launches without a receipt have no log, and one of the first of each stream is at fault."""
        with self.lock:
            self.repeating.retire()
            first: dict[StreamKey, str] = {}
            for sent in self.out:
                if sent.is_out:
                    first.setdefault(sent.stream, sent.entry)
            names = " or ".join(dict.fromkeys(first.values()))
            self.watch.device_lost(f"{names}, or a kernel beside it that is not recorded," if names else "a kernel", error)
            self._give_up(error)
            self.look()

    def _left(self, sent: InFlightLaunch) -> None:
        """A kernel does not leave, and the device is left to it."""
        with self.lock:
            self._give_up(DeviceLost(f"{sent.entry} hangs", code=0, name="a kernel that hangs"))

    def _give_up(self, error: DeviceLost) -> None:
        """No receipt comes any more, but for one of a kernel that hangs."""
        for sent in [sent for sent in self.out if sent.is_out and not sent.hangs]:
            self.out.remove(sent)
            sent.slip, sent.account, sent.examined = None, ReceiptGroup.failed(error), True
