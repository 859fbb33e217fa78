"""Launches that a GPU has made, made again on the virtual machine: for other schedules, and for the text without optimisation.

For each kernel the inputs of the first launch are kept, where the virtual machine may show more than the GPU: if its source is known
(`WithoutOptimisation`), or schedules are to be explored. The parameters are kept, and the allocations that words in them point
into. When the report is made, the virtual machine makes the launch from these. Races that only it shows are added.

Not kept (a note of the report says why): large launches, and such with large memory; launches into graphs; parameters that are not known;
kernels of modules with variables. A launch that ends otherwise on the virtual machine, such as by an address that is loaded from memory,
shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from consan import late
from consan._errors import ConsanError
from consan.backends.cost import COST
from consan.dataclass import dataclass
from consan.reports.counts import some
from consan.reports.model import Finding, Report
from consan.reports.verdict.machine import with_machine_findings
from consan.session.modules.variables import keeps_state
from consan.session.planning.options import MOST_MEMORY, MOST_THREADS, OFF, SessionOptions
from consan.session.without_optimisation import WithoutOptimisation, processor_time

if TYPE_CHECKING:
    from consan.session.framework_launch import FrameworkLaunch
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

_BUDGET: Final = 4.0  # seconds of processor time for all launches of a report, and those of its exploration
_LONGEST: Final = 2.0  # seconds of one launch
_PATIENCE: Final = 1.0  # seconds in which work before a launch must end
_WORD: Final = 8  # bytes of an address
_PIECE: Final = 1 << 20  # bytes that are read at a time
MOST_KEPT: Final = 8 * MOST_MEMORY  # bytes for all launches together
_INTERRUPTED: Final = "interrupted by Ctrl-C"
_LONG: Final = "there was no time for more launches on the virtual machine"


@dataclass(frozen=True)
class _Kept:
    """The inputs of a launch: its parameters, and memory by its address."""

    prepared: Prepared
    launch: FrameworkLaunch
    args: Sequence[bytes]
    memory: dict[int, bytes]


class _NotKept(Exception):  # noqa: N818 - a state of a launch
    """Why the inputs of a launch are not kept."""


@dataclass
class KeptLaunches:
    """Those of one session on a GPU."""

    session: Session
    _seen: set[tuple[str, str]] = field(default_factory=set)  # text and name of kernels
    kept: list[_Kept] = field(default_factory=list)
    _left: dict[str, list[str]] = field(default_factory=dict)  # why kernels were not looked at
    _made: list[tuple[Report, list[Finding]]] = field(default_factory=list)  # on the virtual machine, each with the findings that count
    _bytes: int = 0  # of memory that is kept

    def before(self, prepared: Prepared, launch: FrameworkLaunch) -> None:
        """A launch is about to be made."""
        key = prepared.plain, launch.entry
        if key in self._seen or not self._is_wanted(prepared.plain):
            return
        self._seen.add(key)
        try:
            self.kept.append(self._inputs(prepared, launch))
        except _NotKept as why:
            self._left.setdefault(str(why), []).append(launch.entry)
        except ConsanError as error:
            self._left.setdefault(str(error).partition("\n")[0], []).append(launch.entry)

    def _is_wanted(self, ptx: str) -> bool:
        options = self.session.options
        return options.records and (bool(options.explore) or (options.unoptimized != OFF and self.session.unoptimised.knows(ptx)))

    def _inputs(self, prepared: Prepared, launch: FrameworkLaunch) -> _Kept:
        backend, args = self.session.backend, launch.args()
        if args is None:
            raise _NotKept("its parameters are not known")
        if launch.threads > MOST_THREADS:
            raise _NotKept("the launch is large for the virtual machine")
        if keeps_state(prepared.plain):
            raise _NotKept("its module has variables, whose values are not kept")
        if backend.capturing(launch.stream):
            raise _NotKept("it is launched into a graph")
        with COST.working(), backend.outside_captures():
            if not backend.synchronize(_PATIENCE):
                raise _NotKept("earlier work has not ended")
            return _Kept(prepared, launch.without_arguments, args, self._memory(args))

    def _memory(self, args: Sequence[bytes]) -> dict[int, bytes]:
        """The allocations that words of the parameters point into."""
        backend, found = self.session.backend, dict[int, int]()
        for word in _words(args):
            place = backend.allocation(word)
            if place is not None:
                found |= [place]
        nbytes = sum(found.values())
        if nbytes > MOST_MEMORY:
            raise _NotKept("its memory is too large to be kept")
        if nbytes + self._bytes > MOST_KEPT:
            raise _NotKept("the memory of other launches is kept")
        self._bytes += nbytes
        return {address: b"".join(self._pieces(address, nbytes)) for address, nbytes in found.items()}

    def _pieces(self, address: int, nbytes: int) -> Iterator[bytes]:
        for at in range(0, nbytes, _PIECE):
            yield self.session.backend.read(address + at, min(_PIECE, nbytes - at))

    # -- on the virtual machine ------------------------------------------------------------------------------------------------

    def added(self, report: Report) -> Report:
        """The report, with what the virtual machine shows of the launches that were kept: now, or for an earlier report (`forget`)."""
        kept, self.kept, self._bytes = self.kept, [], 0
        began = processor_time()
        for made, shown in self._made:
            report = with_machine_findings(report, made, shown)
        for number, each in enumerate(kept):
            if any(finding.severity == "error" and finding.kernel == each.launch.entry for finding in report.findings):
                continue  # repair that one first
            if processor_time() - began > _BUDGET + (self.session.options.explore or 0.0):
                self._left.setdefault(_LONG, []).append(each.launch.entry)
                continue
            try:
                report = self._with(each, report)
            except ConsanError as error:
                self._left.setdefault(str(error).partition("\n")[0], []).append(each.launch.entry)
            except KeyboardInterrupt:
                self._left.setdefault(_INTERRUPTED, []).extend(other.launch.entry for other in kept[number:])
                raise
        left = [f"{some(names, 'kernel')}: not looked at on the virtual machine: {why}" for why, names in self._left.items()]
        return replace(report, notes=(*report.notes, *left))

    def forget(self) -> None:
        """Start afresh after a report."""
        self._left, self._made = {}, []

    def _with(self, kept: _Kept, report: Report) -> Report:
        """The report, with what the virtual machine shows of one launch."""
        with COST.working():
            made = made_again(kept, self.session)
        races = late.reruns.races(made)
        shown = [each for each in made.findings if each.unoptimized or each.seed is not None or each in races]
        if why := late.reruns.why_not_compared(made, shown):
            self._left.setdefault(why, []).append(kept.launch.entry)
        self._made.append((made, shown))
        return with_machine_findings(report, made, shown)


def _words(args: Sequence[bytes]) -> Iterator[int]:
    """Words of parameters that may be addresses."""
    for each in args:
        for at in range(0, len(each) - _WORD + 1, _WORD):
            yield int.from_bytes(each[at : at + _WORD], "little")


def made_again(kept: _Kept, owner: Session) -> Report:
    """The report of a launch on the virtual machine."""
    own, launch = owner.options, kept.launch
    limit = min(own.timeout or math.inf, _LONGEST)
    chosen = replace(own.filter, kernel_name=None, launch_skip=0, launch_count=None, overhead=None, prove=0.0)
    options: SessionOptions = replace(own, device="cpu", timeout=limit, keep_histories=False, filter=chosen)
    session = type(owner)(options, private=True)
    try:
        backend: Any = session.backend
        places = {address: backend.alloc(len(data)) for address, data in kept.memory.items()}
        for address, data in kept.memory.items():
            backend.write(places[address], data)
        args = [_moved(each, kept.memory, places) for each in kept.args]
        prepared = session.prepare(kept.prepared.plain, name=kept.prepared.name)
        session.unoptimised = WithoutOptimisation(session, session.unoptimised.opens, meanwhile=lambda: "")
        session.unoptimised.learn(prepared.plain, owner.unoptimised, kept.prepared.plain)
        session.launch(prepared, launch.entry, launch.grid, launch.block, args, shared=launch.shared, cluster=launch.cluster)
        return session.report()
    finally:
        session.close()


def _moved(parameter: bytes, memory: dict[int, bytes], places: dict[int, int]) -> bytes:
    """A parameter, whose addresses are those of the virtual machine."""
    found = bytearray(parameter)
    for at in range(0, len(parameter) - _WORD + 1, _WORD):
        word = int.from_bytes(parameter[at : at + _WORD], "little")
        begin = next((each for each, data in memory.items() if each <= word < each + len(data)), None)
        if begin is not None:
            found[at : at + _WORD] = (places[begin] + word - begin).to_bytes(_WORD, "little")
    return bytes(found)
