"""Watches the launches of a session to their end, and keeps the findings and reasons of those that ended early.

A launch that ends early makes the run incomplete, and the reason says where its threads stood.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from consan._errors import EnvironmentFailure, NotSupported, UsageError
from consan.backends.base import DeviceLost
from consan.dataclass import dataclass
from consan.reports.positions import unfinished
from consan.reports.verdict.speaking.merging import Accumulated
from consan.session.executing import endings
from consan.session.modules.device import Device
from consan.session.modules.positions import positions
from consan.session.modules.prepared import Prepared

if TYPE_CHECKING:
    from consan.backends.cpu import LaunchStats
    from consan.session.executing.launch_check import LaunchCheck
    from consan.session.executing.recording import Recording

LONGEST = 30.0  # seconds that a recorded launch may take, unless the user names a time
_CAUSES = {"CUDA_ERROR_LAUNCH_FAILED": " (one cause: more arrivals at an mbarrier than its count)"}
LEAVING = 2.0  # seconds that a kernel has to exit, once the host stops it


class SessionWatch:
    """How the launches of one session ended. `used` holds its modules by number."""

    def __init__(self, device: Device, timeout: float | None, used: dict[int, Prepared]) -> None:
        self.endings: dict[str, None] = {}  # in the order of their first
        self.reasons: dict[str, None] = {}  # why the run is incomplete
        self.findings = Accumulated()  # those that did not come from the device's tables, which merge by themselves
        self.recorded: LaunchCheck | None = None  # the launch that runs, if it is recorded
        self.in_graphs: Callable[[], Sequence[LaunchCheck]] = tuple  # nodes of graphs, whose launches may run
        self._runs = ""  # the kernel that runs, or is launched
        self._lost_by = ""  # the driver's name of the error that broke the device
        self._device, self._backend, self._timeout, self._used = device, device.backend, timeout, used

    @property
    def timeout(self) -> float:
        """The seconds that the user gives a launch, its replays included."""
        return math.inf if self._timeout is None else self._timeout

    @property
    def _limit(self) -> float | None:
        return self.limit_of(self.recorded)

    def limit_of(self, recorded: LaunchCheck | None) -> float | None:
        """The time limit of a launch. A launch whose threads leave only at a signal always has one."""
        if self._timeout is not None or recorded is None or not recorded.recorded.leaves:
            return self._timeout
        return LONGEST

    def patience_of(self, limit: float) -> float:
        """The seconds that a kernel has to exit, once its time is over: as many again, unless the user has named the limit."""
        return max(LEAVING, limit) if self._timeout is None else LEAVING

    @contextlib.contextmanager
    def ending(self, prepared: Prepared, entry: str, threads: int) -> Iterator[None]:
        """Put a launch that ends early into the report, even if the program continues after the error.

        A launch that the device refuses (`UsageError`) is not reported: it fails without consan too.
        """
        before, self._runs = self._runs, entry
        try:
            yield
        except DeviceLost as error:
            self.device_lost(entry, error)
        except NotSupported as error:
            located = endings.located(error, prepared)
            self.unfinished(entry, str(located))
            raise located from None
        except MemoryError:
            self.unfinished(entry, "there was not enough memory")
            raise EnvironmentFailure(f"launch of {entry}: there is not enough memory for the virtual machine to run it") from None
        except KeyboardInterrupt as error:
            if hasattr(error, endings.STOOD):  # the virtual machine has ended the launch, and says where its threads were
                self.reasons[endings.interrupted(error, prepared, entry)] = None
            else:
                self._end_running(entry, "interrupted", 0.0, threads)
            raise
        except BaseException as error:
            if type(error) is not UsageError:
                self.unfinished(entry, str(error) or type(error).__name__)
            raise
        finally:
            self._runs = before

    def cut_off(self) -> None:
        """The process ends, perhaps while a launch runs: by a signal, whose handler was called."""
        if self._runs:
            self.unfinished(self._runs, "its process was ended")

    def unfinished(self, entry: str, why: str) -> None:
        """Tell that a launch did not end."""
        self.reasons[unfinished(entry, why)] = None

    def after(self, prepared: Prepared, entry: str, result: LaunchStats | None, threads: int, *, alone: bool) -> None:
        """Take the backend's result of a launch. With a time limit, wait for a launch that still runs."""
        if result is not None:
            result = endings.settled(result, alone=alone)
            self.endings |= {result.ending: None} if result.ending else {}
            self.findings.add(endings.findings_of(result, prepared, entry))
            self.reasons |= dict.fromkeys(endings.endings_of(result, prepared, entry, self._timeout))
        elif (limit := self._limit) is not None and not self._backend.synchronize(limit):
            self._stop(entry, limit, threads)

    def synchronize(self) -> None:
        """Wait for the device; stop a launch that exceeds the time limit.

        Kernels without hooks have one at the end, even if the user names none: without consan it would end them.
        """
        try:
            if not self._is_over(self._limit):
                self._stop("a kernel", LONGEST if self._limit is None else self._limit)
        except DeviceLost as error:
            self.device_lost("a kernel", error)
        except KeyboardInterrupt:
            self._end_running("a kernel", "interrupted", 0.0)
            raise

    def _is_over(self, limit: float | None) -> bool:
        """Wait for the stream of the launch that runs, if it is recorded, and else for all."""
        all_streams = self.recorded is None and not self._device.has_hooks
        return self._backend.ends(limit, LONGEST) if all_streams else self._backend.synchronize(limit)

    def _stop(self, entry: str, limit: float | None, threads: int = 0) -> None:
        """The launch exceeds the time limit: make its threads exit at their next loop back-edge."""
        assert limit is not None
        if self.recorded is None:
            self.endings["timeout"] = None
        self._end_running(entry, endings.over_time(limit), self.patience_of(limit), threads)

    def _end_running(self, entry: str, why: str, patience: float, threads: int = 0) -> None:
        """Stop the launches that still run, and give the report the reason and the places.

        `entry` was launched last, with so many `threads`, if it is known which launch it is.
        """
        stopped = [each for each in (self.recorded, *self.in_graphs()) if each is not None and each.can_leave]
        left = self._abort(stopped, patience if stopped or self._device.has_hooks else 0.0)
        for each in stopped:  # its log has the places of its threads
            each.ends_by(why, hangs=not left)
        if not stopped:
            self._stands(entry, why, threads, left=left)
        if not left:
            self.reasons[f"{entry} did not react to the request to stop; the device was left to it"] = None

    def _stands(self, entry: str, why: str, threads: int, *, left: bool) -> None:
        """Note the places of threads that the hooks have reported."""
        if not self._device.has_hooks:
            self.reasons[unfinished(entry, why, [], 0, threads)] = None
            return
        records, over = self._device.shadow.take_stands(lost=not left)
        for kernel, waiters in (positions(records, self._used, entry) or {entry: []}).items():
            self.reasons[unfinished(kernel, why, waiters, over, threads if kernel == entry else 0)] = None

    def _abort(self, recorded: Iterable[LaunchCheck], patience: float) -> bool:
        """Make running kernels exit, and wait for that; False if they do not, and then the device is lost."""
        if self._device.has_hooks:
            self._device.shadow.set_abort(True)
        for each in recorded:
            each.stop()
        if self._is_over(max(LEAVING, patience)):
            if self._device.has_hooks:
                self._device.shadow.set_abort(False)
            return True
        self._device.lost = True
        return False

    def device_lost(self, entry: str, error: DeviceLost) -> None:
        """Report that a kernel has broken the device, once: the driver gives the same error for each call that follows."""
        self._device.lost = True
        if error.name == self._lost_by:
            return
        self._lost_by = error.name
        self.findings.add(endings.fault_of_device(entry, error))
        how = f"{error.name}{_CAUSES.get(error.name, '')}"
        self.reasons[f"{entry} ended with {how}: the launches after it did not run, and counts are lower bounds"] = None

    def forget(self) -> None:
        """Start afresh after a report."""
        self.reasons.clear()
        self.findings.clear()
        self._lost_by = ""


@dataclass
class News:
    """Hands on that a launch is judged, so that this can be stored before the program ends; and whether a finding is unlike all before.

    Not handled: called hooks in modules that a framework loads and launches. Their findings are read when the session is read.
    """

    device: Device
    recording: Recording
    watch: SessionWatch
    on_judged: Callable[[bool], None] | None = None
    _in_ring: int = 0

    def tell(self, *, hooked: bool = False) -> None:
        """Call `on_judged`. `hooked`: look for records of called hooks, too."""
        if self.on_judged is None:
            return
        new = bool(self.recording.findings.new or self.watch.findings.new or (hooked and self._ring_has_more()))
        self.recording.findings.new = self.watch.findings.new = False
        self.on_judged(new)

    def _ring_has_more(self) -> bool:
        before, self._in_ring = self._in_ring, self.device.shadow.found() if self.device.has_hooks else 0
        return self._in_ring > before
