"""Launches of several ranks on the virtual machine, made as one (consan/ranks).

Their kernels become one (instrument/rewriting/joined.py), with the grid of each rank as a part, and the parameters of all. The launch gets
all symmetric memory, wherever arguments point: kernels read addresses from tables. Numbers that are addresses of the host become those of
the copies.

Launches without a barrier of all ranks between them may overlap on GPUs: those of different ranks are compared for symmetric memory, those
of one rank in two streams for all memory (consan/session/comparing/rank_launches.py).

Where a kernel has `multimem` instructions, the memory of the ranks lies at equal distances (consan/launching/of_ranks.py).

Not handled: ranks whose grids, threads or clusters differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from consan._errors import NotSupported
from consan.adapters.distributed.order import order_of
from consan.adapters.triton.host import HostArray, HostBlock, HostMemory, block_of
from consan.adapters.triton.parameters import Leaf
from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.instrument.ptx import Module, parse
from consan.instrument.rewriting.joined import joined
from consan.instrument.rewriting.multicast import ABOVE, of_each_rank
from consan.launching.of_ranks import stride_of
from consan.launching.placement import Placement, Symmetric, placed
from consan.ranks.crew import Crew
from consan.ranks.memory import SymmetricMemory, address_of
from consan.reports.source.variables import Argument
from consan.session.comparing.launch_memory import Copied, LaunchShape, Memory
from consan.session.comparing.program_streams import ProgramStream
from consan.session.modules.layouts import NamedBuffers

_ALIKE: Final = ("num_warps", "num_ctas")


class LauncherLike(Protocol):
    """The parts of Triton's launcher that are needed."""

    metadata: Any
    framework: str

    def leaves(self, args: Sequence[Any]) -> list[Leaf]:
        """The arguments, one by one."""

    def values(self, found: Sequence[Leaf], memory: HostMemory, placement: Placement, of: str = "") -> Iterator[bytes]:
        """The bytes of each parameter."""

    def scratch(self, placement: Placement, grid: Dim3, count: int) -> list[bytes]:
        """So many pointers that follow the arguments."""


def blocks(found: Iterable[Leaf]) -> list[HostBlock]:
    """The host memory that arguments point into."""
    return [block for leaf in found if leaf.refers and (block := block_of(leaf.base, leaf.label)) is not None]


@dataclass(frozen=True)
class RankLaunch:
    """The launches of a rank."""

    launcher: LauncherLike
    session: Any
    grid: Dim3
    entry: str
    ptx: str
    args: Sequence[Any]
    stream: ProgramStream

    def together(self, launches: Mapping[int, RankLaunch], crew: Crew) -> None:
        """Launch for some ranks at the same time."""
        self._refuse_others(launches)
        metadata, session = self.launcher.metadata, self.session
        kernels = [launches.get(rank) for rank in range(crew.count)]
        order = order_of(crew, session)
        dependents = frozenset(rank for rank, each in launches.items() if getattr(each.launcher.metadata, "launch_pdl", False))
        windows = _windows(launches, crew.memory)
        modules = [None if each is None else (each.module(crew.count, stride_of(windows)), each.entry) for each in kernels]
        module, entry = joined(modules, self.grid)
        prepared = session.prepare(module.text, name=entry)
        prepared.framework = self.launcher.framework
        ctas, (x, y, z) = int(getattr(metadata, "num_ctas", 1)), self.grid
        with session.streams.lock, placed(session) as placement:
            values, names, memory = _parameters(launches, crew.memory, placement, windows)
            crew.memory.write_tables(memory.address, session.backend.write)
            checked = session.launch(
                prepared, entry, (x * ctas, y, z * crew.count), (metadata.num_warps * 32, 1, 1), values,
                shared=max(each.launcher.metadata.shared for each in launches.values()), cluster=(ctas, 1, 1), cooperative=True,
                address_name=names,
            )  # fmt: skip
            if checked and order is not None:
                copies = [Copied(array, memory.address(address_of(array))) for _, array, _ in crew.memory.named()]
                shape = LaunchShape(entry, (x * ctas, y, z * crew.count), (metadata.num_warps * 32, 1, 1), Memory(copies, shared=False))
                owners = [arg for each in launches.values() for arg in each.args]
                own = Memory([Copied(*each) for each in placement.copies], shared=False, owners=owners)
                order.launched(prepared, shape, z, {rank: each.stream for rank, each in launches.items()}, own, dependents)

    def module(self, ranks: int, stride: int) -> Module:
        """Its module. With a `stride` its `multimem` instructions are accesses to the memory of each rank, so far apart."""
        module = parse(self.ptx, self.entry)
        return of_each_rank(module, ranks, stride) if stride else module

    def _refuse_others(self, launches: Mapping[int, RankLaunch]) -> None:
        for rank, each in launches.items():
            own = [getattr(one.launcher.metadata, name, 1) for name in _ALIKE for one in (self, each)]
            if each.grid != self.grid or own[::2] != own[1::2]:
                raise NotSupported(
                    f"rank {rank} launches {each.entry} with another grid or number of threads than {self.entry} of another rank"
                )


def _windows(launches: Mapping[int, RankLaunch], shared: SymmetricMemory) -> list[Symmetric]:
    """The memory that is to lie at equal distances, of each rank: all windows, if a launch has `multimem` instructions."""
    many = any("multimem." in each.ptx for each in launches.values())
    return [Symmetric([each.bytes for each in window.ranks]) for window in shared.windows if many]


def _parameters(
    launches: Mapping[int, RankLaunch], shared: SymmetricMemory, placement: Placement, windows: list[Symmetric]
) -> tuple[list[bytes], NamedBuffers, HostMemory]:
    """The parameters of all ranks, the names of their memory, and where it is."""
    found = {rank: each.launcher.leaves(each.args) for rank, each in launches.items()}
    arrays = [array for _, array, _ in shared.named()] + shared.tables()
    of_host = [block for array in arrays if (block := block_of(HostArray(array), "")) is not None]
    if windows:
        placement.lay_out(windows, stride_of(windows), ABOVE)
    known = [
        (HostBlock(_begin(array), _begin(array) + array.nbytes, True), placement.address(array))
        for each in windows
        for array in each.arrays
    ]
    memory = HostMemory(placement, [*of_host, *(block for each in found.values() for block in blocks(each))], known)
    values: list[bytes] = []
    for rank, each in launches.items():
        own = [leaf if leaf.refers else _moved(leaf, shared, memory) for leaf in found[rank]]
        given = list(each.launcher.values(own, memory, placement, f"rank {rank}, "))
        entry = next(one for one in parse(each.ptx).functions if one.name == each.entry)
        values += given + each.launcher.scratch(placement, each.grid, len(entry.params) - len(given))
    named = [Argument(label, memory.address(_begin(array)), array.nbytes, "", element) for label, array, element in shared.named()]
    return values, NamedBuffers((*named, *placement.buffers)), memory


def _moved(leaf: Leaf, shared: SymmetricMemory, memory: HostMemory) -> Leaf:
    """A number; if it is an address of the host or of all ranks, that of the copy."""
    above = next((above for above in (0, ABOVE) if type(leaf.value) is int and shared.is_address(leaf.value + above)), None)
    return leaf if above is None else leaf._replace(value=memory.address(leaf.value + above) - above)


def _begin(array: Any) -> int:
    return HostArray(array).data_ptr()
