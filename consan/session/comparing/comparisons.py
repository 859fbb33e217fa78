"""The inputs of a comparison of launches, and the places of its results.

Streams and graphs know this, and neither the session nor an engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Final, Protocol

from consan.backends.base import DEFAULT_STREAMS
from consan.checker.compiled.concurrent_launches import Keep, Retained
from consan.dataclass import dataclass
from consan.reports.decoding.launch_race import OperationSide
from consan.reports.model import Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.speaking.merging import Accumulated
from consan.session.comparing.pairs.awaited import AwaitedAccesses
from consan.session.modules.prepared import Prepared
from consan.session.planning.proofs import LaunchBytes

BEFORE: Final = "what the default stream did before there could be launches at the same time"
HOST_CODE: Final = OperationSide("the host's code", "", 0)
PASSED: Final = OperationSide("what all streams did before", "", 0)
EXCHANGE: Final = OperationSide("an exchange of processes", "", 0)
_NOT_COMPARED: Final = "launches of different streams are not compared on a GPU"


@dataclass
class LaunchAccesses:
    """The accesses to global memory of one launch after the other. `wanted`: they are to be kept for a comparison.

    `later`: the program goes on meanwhile, and they come later; `awaited`: those of the last launch, then. `by_address`: those of the next
    one are known by its addresses alone; `touched`: its bytes, where its text and its parameters tell all of them, so that none is kept.
    """

    wanted: bool = False
    later: bool = False
    awaited: AwaitedAccesses | None = None
    peers: bool = False  # other GPUs may use the flags of launches
    chained: bool = False  # launches that may start while the one before them runs are compared
    last: Retained | None = None  # those of the last launch; None: not all are known
    alike: bool = False  # they are those of an earlier launch
    plain: bool = False  # it had no finding
    by_address: bool = False
    touched: LaunchBytes | None = None

    def forget(self) -> None:
        """Those of the next launch are not known."""
        self.last, self.awaited, self.alike, self.plain, self.touched = None, None, False, False, None

    @contextlib.contextmanager
    def placed(self, *, by_address: bool) -> Iterator[None]:
        """Inside the block a launch is made."""
        self.by_address = by_address
        try:
            yield
        finally:
            self.by_address = False

    @property
    def keep(self) -> Keep:
        """Which accesses of the next launch are kept."""
        return Keep.NOTHING if not self.logged else Keep.PEER_FLAGS if self.peers else Keep.ACCESSES

    @property
    def logged(self) -> bool:
        """Whether the accesses of the next launch are wanted, and only its log has them."""
        return self.wanted and self.touched is None

    @property
    def compares(self) -> bool:
        """Whether programmatic dependent launches are compared with what they may run beside."""
        return self.wanted or self.chained


class KernelGaps(Protocol):
    """Where each kernel's gaps are noted."""

    of_streams: tuple[str, ...]

    def lacks_global_races(self, prepared: Prepared, entry: str, why: str) -> None:
        """Keep why a kernel's global memory was not checked in full."""

    def lacks_comparison(self, prepared: Prepared, entry: str, why: str) -> None:
        """The same, and the report is incomplete."""


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of one session. `reasons`: why its report is incomplete.

    `dependents`: pairs of kernels that were compared, the second one as a programmatic dependent of the first.
    """

    accesses: LaunchAccesses
    sites_of: Callable[[Prepared], ModuleSites]
    findings: Accumulated
    reasons: dict[str, None]
    kernels: KernelGaps
    dependents: set[tuple[str, str]] = field(default_factory=set)

    def found(self, findings: Iterable[Finding]) -> None:
        """Report races of two launches."""
        self.findings.add(findings)

    def incomplete(self, why: str) -> None:
        """Two launches were not compared: the report is incomplete."""
        self.reasons[why] = None

    def kernel_lacks(self, prepared: Prepared, entry: str, why: str) -> None:
        """A launch of a kernel was not compared with another one: the report says so of the kernel."""
        self.kernels.lacks_global_races(prepared, entry, why)

    def launch_lacks(self, prepared: Prepared, entry: str, why: str) -> None:
        """A launch of a kernel was not compared with another one that it has to be: the report is incomplete."""
        self.kernels.lacks_comparison(prepared, entry, why)

    def streams_lack(self, why: str) -> None:
        """Launches of different streams are not compared: the report is incomplete, and says so of all kernels."""
        self.incomplete(why)
        self.kernels.of_streams = (why,)


@dataclass
class StreamsSeen:
    """The streams since the last report, in which a framework launches on a GPU. `why`: what is missing for a comparison; empty: nothing.

    If a call of the driver is not seen, or not understood, two launches that are ordered would look like a race (followed_streams.py). So
    launches of different streams are not compared then, and the report is incomplete.
    """

    comparisons: list[Comparisons]  # of each context
    why: str = ""
    _streams: set[int] = field(default_factory=set)

    def launched(self, stream: int) -> None:
        """A kernel is launched in a stream."""
        self._streams.add(0 if stream in DEFAULT_STREAMS else stream)
        self._tell()

    def stops(self, why: str) -> None:
        """From now on something is missing for a comparison."""
        self.why = self.why or why
        self._tell()

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._streams.clear()

    def _tell(self) -> None:
        if self.why and len(self._streams) > 1:
            for each in self.comparisons:
                each.streams_lack(f"{_NOT_COMPARED}: {self.why}")
