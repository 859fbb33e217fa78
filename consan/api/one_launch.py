"""One launch of the Python API, of one rank or of several: its kernel and shape, and how a session makes it with its arguments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from consan._errors import UsageError
from consan.api.kernel import Kernel
from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.launching import AGAIN
from consan.launching.entries import choose_entry
from consan.launching.of_ranks import module_of_ranks, of_all_ranks, place_windows, unordered_puts, with_counters
from consan.launching.placement import Placement, placed
from consan.launching.values import arguments, may_point
from consan.reports.model import Report
from consan.session.asking.results import PlainRuns
from consan.session.comparing.streams import Stream
from consan.session.modules.layouts import name_addresses
from consan.session.modules.prepared import Prepared
from consan.session.planning.exploration import by_seed
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish


@dataclass(frozen=True)
class OneLaunch:
    """A launch but for its arguments and the session that it is made in."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    cluster: Dim3
    smem: int
    cooperative: bool
    ranks: int = 1

    def on(
        self, session: Session, args: Sequence[Any], compare: Callable[[Prepared, Placement], None] = lambda prepared, placement: None
    ) -> tuple[Report, bool]:
        """The report, and whether all memory that the arguments refer to is known here."""
        kernel = self.kernel
        with session.turn():
            prepared = session.prepare(kernel.module, name=kernel.name, cluster=math.prod(self.cluster))
            with placed(session) as placement:
                values = self._values(placement, args)
                session.address_name = name_addresses(prepared, kernel.entry, placement.buffers)
                session.recording.rank_memory = placement.rank_memory
                placement.owns_all &= not any(map(may_point, args))
                how: dict[str, Any] = {"shared": self.smem, "cluster": self.cluster, "cooperative": self.cooperative}
                launch = (kernel.entry, self.grid, self.block, values)
                session.launch(prepared, *launch, restore=placement.restore, **how)
                for why in unordered_puts(kernel.module):
                    session.recording.kernels.lacks_comparison(prepared, kernel.entry, why)
                compare(prepared, placement)
                report = finish(session.report())
                if session.backend.simulates and placement.owns_all:
                    with by_seed(session.backend):
                        report = PlainRuns(session.backend, placement, launch, how).compared(report, kernel.module.text)
                return report, placement.owns_all

    def on_machine(self, options: SessionOptions, args: Sequence[Any]) -> Report:
        """The report of the virtual machine, where a GPU has left none."""
        machine = Session(replace(options, device="cpu", timeout=min(options.timeout or AGAIN, AGAIN)))
        machine.note(f"{self.kernel.entry}: the GPU left no log, so the launch was checked again on the virtual machine")
        return self.on(machine, copy.deepcopy(list(args)))[0]

    def _values(self, placement: Placement, args: Sequence[Any]) -> list[bytes]:
        """The bytes of each parameter."""
        placing = place_windows(placement, args, self.ranks, self.kernel.module)
        values, each = arguments(self.kernel.function, placing), len(args) // self.ranks
        names = [f"rank {rank}, argument" if self.ranks > 1 else "argument" for rank in range(self.ranks)]
        own = [value for rank, name in enumerate(names) for value in placement.parameters(values[rank * each :][:each], name)]
        return [*own, *(placement.parameter(value, "counters", "NVSHMEM's barriers") for value in values[self.ranks * each :])]


def one_launch(
    kernel: Kernel, shape: tuple[Dim3, Dim3, Dim3], smem: int, cooperative: bool,
    args: Any, ranks: int, options: SessionOptions, stream: Stream | None,
) -> tuple[OneLaunch, Sequence[Any]]:  # fmt: skip
    """The launch with its arguments: those of all ranks, if there are several."""
    made = OneLaunch(kernel, *shape, smem, cooperative)
    if ranks == 1:
        return made, args
    _check_ranks(ranks, options, stream)
    return _of_ranks(made, ranks, args)


def _of_ranks(made: OneLaunch, ranks: int, args: Any) -> tuple[OneLaunch, Sequence[Any]]:
    """A launch for all ranks, and the arguments of all. Its CTAs must all run at once: ranks wait for each other."""
    kernel, (x, y, z) = copy.copy(made.kernel), made.grid
    if made.cooperative:
        raise UsageError("cooperative=True: the grid-wide barrier of a rank is not supported with ranks")
    given = with_counters(kernel.module, ranks, of_all_ranks(args, ranks, len(made.kernel.function.params)))
    kernel.module = module_of_ranks(kernel.module, kernel.entry, ranks, made.grid, given)
    kernel.function = choose_entry(kernel.module, kernel.entry, kernel.name)
    whole = replace(made, kernel=kernel, grid=(x, y, z * ranks), cooperative=True, ranks=ranks)
    return whole, given


def _check_ranks(ranks: int, options: SessionOptions, stream: Stream | None) -> None:
    if not isinstance(ranks, int) or not options.records:
        raise UsageError(f"ranks={ranks!r}: expected a number, and a recorded launch: called hooks (engine='inline') know one GPU")
    if stream is not None:
        raise UsageError("stream: a launch of several ranks is not compared with others")
