"""Recorded launches beside which the program goes on: nobody waits for their kernels.

In the stream of such a launch its memory is cleared and its module is given the launch's variables; behind the kernel comes a receipt
(consan/checker/receipts.py). The host looks at receipts when the program makes its next launches. A launch with a receipt that an earlier
launch of the kernel had did the same, and is counted. What is new is checked in a thread. Launches are concluded in the order in which they
were made, all of them before a report, and before a launch that the host waits for.

The host waits where all slips or too many logs are in use. A thread stops a kernel that runs for longer than the time limit.

Not handled: a fault of a kernel that is not recorded and runs between recorded ones. The report cannot tell which of them it was.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from consan.backends.base import DeviceLost, StreamWork
from consan.checker.launch import result_bytes
from consan.checker.memory import MOST_KEPT
from consan.checker.receipts import MOST_RESULTS, Receipt, Slip
from consan.instrument.record.global_memory import Mode
from consan.session import endings
from consan.session.device import Device
from consan.session.judging import Examined, Judge
from consan.session.prepared import Prepared
from consan.session.started import Started
from consan.session.watch import LEAVING, SessionWatch

MOST_KNOWN: Final = 1 << 12  # receipts
_SHORTEST_NAP, _LONGEST_NAP = 20e-6, 2e-3  # seconds
LOOK_EVERY: Final = 0.25  # seconds between two looks at kernels that run
_PER_THREAD: Final = 2  # the handle of a thread's own default stream
StreamKey = tuple[int, int]


@dataclass
class Account:
    """What the launches with one receipt did. `examined`: None until it is known, or if it could not be."""

    is_known: bool = False
    examined: Examined | None = None
    error: BaseException | None = None
    results: bytes = b""  # of the launch that was examined
    repeats_by_results: bool = False

    def serves(self, results: bytes) -> bool:
        """Whether a launch with an equal receipt, but for these results, did the same."""
        checked = self.examined.checked if self.examined is not None else None
        if checked is None or checked.gaps or checked.unended or checked.by_clip:
            return False
        return not checked.by_address or (self.repeats_by_results and results == self.results)


@dataclass(eq=False)
class Sent:
    """A launch that was made and is not concluded. `slip`: until its receipt has come."""

    prepared: Prepared
    entry: str
    started: Started
    stream: StreamKey
    slip: Slip | None
    account: Account | None = None
    results: bytes = b""
    examined: bool = False  # by itself
    void: bool = False  # the driver has refused it
    running_since: float | None = None
    stopped_at: float | None = None
    hangs: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether it can be concluded."""
        return (self.void and self.slip is None) or (self.account is not None and self.account.is_known)


@dataclass
class BesideProgram:
    """The launches of one session."""

    device: Device
    judge: Judge
    watch: SessionWatch
    _sent: deque[Sent] = field(default_factory=deque)  # in their order
    _out: list[Sent] = field(default_factory=list)  # those whose receipts have not come
    _known: dict[Hashable, Account] = field(default_factory=dict)
    _last: dict[int, Sent] = field(default_factory=dict)  # by the address of its module's variable
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _pool: ThreadPoolExecutor | None = None
    _watcher: threading.Thread | None = None
    _busy: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.judge.settle = self.settle

    @property
    def _work(self) -> StreamWork:
        work = self.device.backend.work
        assert work is not None
        return work

    def takes(self, prepared: Prepared, entry: str) -> bool:
        """Whether the program goes on beside a launch of a kernel."""
        recorded, recording = prepared.recorded, self.judge.recording
        if recorded is None or self.device.backend.work is None or self.device.lost or self.judge.keeper is not None:
            return False
        if recorded.mode is not Mode.OFF or not recorded.leaves or recording.asks_all or entry in recorded.silent:
            return False
        return not recorded.compact or result_bytes(recorded.compact[prepared.entries.index(entry)]) <= MOST_RESULTS

    @contextlib.contextmanager
    def launched(self, prepared: Prepared, entry: str, started: Started, stream: int) -> Iterator[None]:
        """Inside the block the framework launches."""
        sent = self._begun(prepared, entry, started, (stream, threading.get_ident() if stream == _PER_THREAD else 0))
        try:
            yield
        except BaseException:
            if sent is not None:
                sent.void = True
            raise
        finally:
            if sent is not None:
                self._ended(sent)

    def make_room(self) -> None:
        """Wait until the next launch may be made."""
        self.look()
        most = min(MOST_KEPT, 2 * self.judge.recording.most_bytes(self.device.backend))
        while self._sent and not self.device.lost and (not self.device.receipts.free or self.device.logs.used > most):
            self._wait(self._sent[0])

    def settle(self) -> None:
        """Wait until all launches are concluded."""
        while self._sent:
            self._wait(self._sent[-1])
        self.device.unsettled = None

    def forget(self) -> None:
        """Start afresh after a report: what later launches do is new again."""
        self._known.clear()

    # -- in the stream -----------------------------------------------------------------------------------------------------

    def _begun(self, prepared: Prepared, entry: str, started: Started, stream: StreamKey) -> Sent | None:
        """Put into the stream what comes before the kernel. None: the device is lost."""
        memory, work = started.memory, self._work
        assert memory is not None
        sent = Sent(prepared, entry, started, stream, self.device.receipts.take())
        assert sent.slip is not None
        try:
            with work.entered():
                before = self._last.get(memory.told[0])
                if before is not None and before.slip is not None and before.stream != stream:  # it has the module's variables
                    work.after(before.slip.ended, stream[0])
                for address, nbytes in memory.to_clear:
                    work.clear(address, nbytes, stream[0])
                at = 0
                for address, data in zip(memory.told, memory.variables(), strict=True):
                    work.copy(address, sent.slip.given(at, data), stream[0])
                    at += len(data)
                work.mark(sent.slip.begun, stream[0])
        except DeviceLost as error:
            self.lost(error)
            return None
        self._last[memory.told[0]] = sent
        return sent

    def _ended(self, sent: Sent) -> None:
        """Put into the stream what comes behind the kernel."""
        memory, work = sent.started.memory, self._work
        assert memory is not None
        assert sent.slip is not None
        with self._lock:
            self._sent.append(sent)
            self._out.append(sent)
            self.device.unsettled = self.settle
            try:
                with work.entered():
                    self.device.receipts.ask(sent.slip, *memory.receipt_of, sent.stream[0])
                    work.mark(sent.slip.ended, sent.stream[0])
            except DeviceLost as error:
                self.lost(error)
                return
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True, name="consan-launches")
            self._watcher.start()
        self._busy.set()

    # -- behind it ---------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Take the receipts that have come, and conclude what can be."""
        with self._lock:
            for sent in [sent for sent in self._out if sent.slip is not None and (sent.slip.is_there or sent.hangs)]:
                self._received(sent)
            while self._sent and self._has_decided(self._sent[0]):
                self._conclude(self._sent.popleft())

    def _received(self, sent: Sent) -> None:
        """Take a receipt: the launch did what an earlier one did, or is checked."""
        memory, slip = sent.started.memory, sent.slip
        assert memory is not None
        assert slip is not None
        self._out.remove(sent)
        sent.slip = None
        receipt = None if sent.hangs else slip.read(memory.result_bytes)
        self.device.receipts.free.append(slip)
        if sent.void:
            sent.started.free()
            return
        if receipt is not None:
            sent.results = receipt.results
            memory.received(receipt.results)
        if receipt is None or receipt.unended or sent.started.stopped:
            self._examine(sent, Account())
            return
        key = self._key(sent, receipt)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._examine(sent, self._known.setdefault(key, Account()))
        else:
            sent.account = found
            if found.is_known and found.serves(sent.results):
                sent.started.free()

    def _key(self, sent: Sent, receipt: Receipt) -> Hashable:
        memory = sent.started.memory
        assert memory is not None
        shape = memory.grid, memory.block, memory.cluster, memory.lines
        return sent.prepared.number, sent.entry, shape, memory.window(), memory.shared_part(), receipt.sums

    def _has_decided(self, sent: Sent) -> bool:
        """Whether the first launch can be concluded. If another one turns out not to stand for it, it is checked."""
        account = sent.account
        if account is not None and account.is_known and not sent.examined and not account.serves(sent.results):
            self._examine(sent, Account())
        return sent.is_decided

    def _examine(self, sent: Sent, account: Account) -> None:
        """Check a launch in the thread."""
        sent.account, sent.examined = account, True
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "consan-checks")
        self._pool.submit(self._examined, sent, account)

    def _examined(self, sent: Sent, account: Account) -> None:
        memory = sent.started.memory
        assert memory is not None
        try:
            with self.device.backend.apart_from_captures():
                account.examined = self.judge.examined(sent.prepared, sent.entry, sent.started)
                account.results = sent.results
                account.repeats_by_results = account.examined.checked.by_address and memory.repeats_by_results
                if not self.device.lost:
                    sent.started.free()
        except BaseException as error:  # it is raised where the launch is concluded
            account.error = error
        finally:
            account.is_known = True

    def _conclude(self, sent: Sent) -> None:
        """Tell what a launch did."""
        account = sent.account
        if sent.void or account is None:
            return
        if isinstance(account.error, DeviceLost) and not self.device.lost:
            self.lost(account.error)
        if account.error is not None and self.device.lost:
            self.judge.loses(sent.entry)
            return
        if account.error is not None:
            self.watch.unfinished(sent.entry, str(account.error) or type(account.error).__name__)
            raise account.error
        examined = account.examined
        assert examined is not None
        if not sent.examined:
            sent.started.free()
            examined = replace(examined, checked=examined.checked.again(), fixes={})
        self.judge.concluded(sent.prepared, sent.entry, sent.started, examined)

    # -- waiting -----------------------------------------------------------------------------------------------------------

    def _wait(self, sent: Sent) -> None:
        """Wait until a launch is concluded. Ctrl-C stops it."""
        began = time.monotonic()
        try:
            while sent in self._sent:
                self.look()
                self._ask_device(sent)
                time.sleep(min(max(_SHORTEST_NAP, (time.monotonic() - began) / 20), _LONGEST_NAP))
        except KeyboardInterrupt:
            self._interrupted()
            raise

    def _ask_device(self, sent: Sent) -> None:
        """Find out whether the device is lost, while a receipt does not come."""
        slip = sent.slip
        if slip is None or slip.is_there or self.device.lost:
            return
        try:
            with self._work.entered():
                self._work.passed(slip.ended)
        except DeviceLost as error:
            self.lost(error)

    def lost(self, error: DeviceLost) -> None:
        """The device is lost: launches without a receipt have no record, and one of the first of each stream is at fault."""
        with self._lock:
            first: dict[StreamKey, str] = {}
            for sent in self._out:
                if sent.slip is not None and not sent.slip.is_there:
                    first.setdefault(sent.stream, sent.entry)
            names = " or ".join(dict.fromkeys(first.values()))
            self.watch.device_lost(f"{names}, or a kernel beside it that is not recorded," if names else "a kernel", error)
            self._give_up(error)
            self.look()

    def _give_up(self, error: DeviceLost) -> None:
        """No receipt comes any more, but for one of a kernel that hangs."""
        for sent in [sent for sent in self._out if sent.slip is not None and not (sent.slip.is_there or sent.hangs)]:
            self._out.remove(sent)
            sent.slip, sent.account, sent.examined = None, Account(is_known=True, error=error), True

    def _interrupted(self) -> None:
        with self._lock:
            for sent in self._out:
                self.watch.unfinished(sent.entry, "interrupted")
            self._out.clear()
            self._sent.clear()

    # -- kernels that do not end -------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Stop kernels that run for too long."""
        with self.device.backend.apart_from_captures():
            while not self.device.lost:
                self._busy.wait()
                time.sleep(LOOK_EVERY)
                with contextlib.suppress(DeviceLost):  # who waits for a launch finds out
                    self._look_at_clock()

    def _look_at_clock(self) -> None:
        with self._lock:
            if not self._out:
                self._busy.clear()
            first: dict[StreamKey, Sent] = {}
            for sent in self._out:
                if sent.slip is not None and not sent.slip.is_there:
                    first.setdefault(sent.stream, sent)
        for sent in first.values():
            self._look_at(sent)

    def _look_at(self, sent: Sent) -> None:
        limit, slip, now = self.watch.limit_of(sent.started), sent.slip, time.monotonic()
        if slip is None or limit is None:
            return
        if sent.running_since is None:
            with self._work.entered():
                sent.running_since = now if self._work.passed(slip.begun) else None
        elif sent.stopped_at is None and now > sent.running_since + limit:
            self._stop(sent, limit, now)
        elif sent.stopped_at is not None and now > sent.stopped_at + max(LEAVING, limit):
            self._leave(sent)

    def _stop(self, sent: Sent, limit: float, now: float) -> None:
        assert sent.started.memory is not None
        sent.started.stopped, sent.stopped_at = endings.over_time(limit), now
        sent.started.memory.stop()

    def _leave(self, sent: Sent) -> None:
        """A kernel does not leave: its record is read while it hangs."""
        assert sent.started.memory is not None
        self.watch.reasons[f"{sent.entry} did not react to the request to stop; the device was left to it"] = None
        sent.started.memory.hangs = sent.hangs = self.device.lost = True
        with self._lock:
            self._give_up(DeviceLost(f"{sent.entry} hangs", code=0, name="a kernel that hangs"))

