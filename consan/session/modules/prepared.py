"""A module of a session: its text, the instrumented text, and the loaded form."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable
from dataclasses import field, replace
from typing import Final

from consan._errors import UsageError
from consan.backends.base import Backend, Dim3, Handle
from consan.checker.logs.log_lines import LogRoom
from consan.checker.logs.shares import Slices
from consan.dataclass import dataclass
from consan.instrument import Instrumented
from consan.instrument.record import Recorded
from consan.reports.source.variables import Layout
from consan.reports.words.frameworks import CUDA
from consan.session.modules.in_clusters import units_of

LogShape = tuple[int, Dim3, Dim3, Dim3]  # a kernel's place among the entries, grid, block and cluster
_GRID_BARRIER: Final = "%envreg2"  # half of the address of its workspace


@dataclass
class KnownLogs:
    """The logs of a module's launches. `roomy`: one of the usual length was full. `lines`: used by launches of a shape; 0: these differ.
    `full_once`: one was full, so parameters bound none: an earlier launch with others may have left the memory.

    `unrepeatable`: nobody can repeat the launches, so their logs are as long as the memory for logs allows. `slow`: the replays of a launch
    have taken long, so of later ones a few CTAs are replayed.
    """

    roomy: bool = False
    lines: dict[LogShape, int] = field(default_factory=dict)
    unrepeatable: bool = False
    slow: bool = False
    full_once: bool = False
    slices: dict[LogShape, Slices] = field(default_factory=dict)  # where the logs of all CTAs have no room

    def room(self, shape: LogShape, *, roomy: bool, most: int = 0) -> LogRoom:
        """For the next launch of a shape. `roomy`: its log is to be long. `most`: words of a thread, by its parameters; 0: not known."""
        slices = self.slices.get(shape)
        return LogRoom(roomy, self.lines.get(shape, 0), most, some=None if slices is None else slices.next)

    def length(self, shape: LogShape) -> Hashable:
        """A key that is equal for launches of a shape whose logs have one length and are those of the same CTAs."""
        slices = self.slices.get(shape)
        return 2 * self.lines.get(shape, -1) + self.roomy, None if slices is None else slices.next

    def used(self, shape: LogShape, lines: int) -> None:
        """A launch has used so many lines, unless launches of its shape differ."""
        if self.lines.get(shape, -1):
            self.lines[shape] = max(lines, self.lines.get(shape, 0))

    def full(self, shape: LogShape) -> bool:
        """A log was full. Returns whether later ones are longer."""
        self.full_once = True
        if self.lines.get(shape):
            self.lines[shape] = 0
            return True
        before, self.roomy = self.roomy, True
        return not before


@dataclass
class MachineCode:
    """The image that the device loads, unless it takes PTX. `notes`: of the assembler, for the report. `delayed`: with seeded delays.

    `assemble` makes `cubin` where that is not made yet. `load_later` loads the module when it is first used.
    """

    cubin: bytes | None = None
    assemble: Callable[[], bytes] | None = None
    load_later: Callable[[Prepared], object] | None = None
    notes: tuple[str, ...] = ()
    delayed: bool = False

    def made(self) -> bytes | None:
        """The machine code, assembled now if it was not yet. None: the device takes PTX."""
        if self.assemble is not None:
            self.cubin, self.assemble = self.assemble(), None
        return self.cubin


@dataclass(eq=False)
class Prepared:
    """One module. `number` and `counter` place it in the shadow's tables."""

    name: str
    plain: str
    instrumented: Instrumented
    number: int
    counter: int = 0  # of called hooks
    code: MachineCode = field(default_factory=MachineCode)
    handle: Handle | None = None  # as it is loaded
    plain_loaded: dict[str, Handle] = field(default_factory=dict)  # the forms without hooks, by their text
    unseen: str | None = None  # a framework loads it, and its program reaches its variables: why its launches get no log; empty: they do
    launched: bool = False
    recorded: Recorded | None = None  # with the recording engine: what its logs mean
    logs: KnownLogs = field(default_factory=KnownLogs)  # recorded: what is known of the logs of later launches from earlier ones
    framework: str = CUDA  # the framework whose words the fixes use
    layout: Callable[[str], Layout] = lambda entry: Layout()  # of a kernel's shared memory, where known
    address_name: Callable[[int, int], str] = lambda begin, end: ""  # names bytes of global memory

    @functools.cached_property
    def chains(self) -> bool:
        """Whether a kernel may start while the launch before it runs, or lets the next one start."""
        return any(each.grid_controls for each in self.instrumented.functions)

    @property
    def gets_logs(self) -> bool:
        """Whether its launches are recorded, and get logs."""
        return self.recorded is not None and not self.unseen

    @property
    def loaded(self) -> Handle | None:
        """The loaded module. One whose other form may serve is assembled and loaded here, when it is first used."""
        if self.handle is None and self.code.load_later is not None:
            self.code.load_later(self)
        return self.handle

    def as_plain(self) -> Prepared:
        """The same, where its own text is launched: a line of that is a line of the user's."""
        return replace(self, instrumented=replace(self.instrumented, lines=range(1, self.plain.count("\n") + 2)))

    def variables(self, backend: Backend, *spaces: str) -> list[tuple[str, int, int]]:
        """Names, addresses and sizes of its variables in some spaces: all its launches have the same.

        A driver may not tell those that only this module can name (`static`): they are left out.
        """
        found = []
        for each in self.instrumented.module.variables:
            for name in each.names if each.space in spaces else ():
                with contextlib.suppress(UsageError):
                    found.append((name.name, *backend.symbol(self.loaded, name.name)))
        return found

    @property
    def synchronises_grid(self) -> bool:
        """Whether it uses the barrier of a cooperative grid, which other launches do not have."""
        return _GRID_BARRIER in self.plain

    @functools.cached_property
    def units(self) -> dict[str, Dim3]:
        """By kernel that counts its grid in clusters: the CTAs of one, in each dimension."""
        return units_of(self)

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self.instrumented.entries

    def number_of(self, entry: str) -> int:
        """The place of a kernel among the entries. Raises UsageError if there is none of this name."""
        entries = self.instrumented.entries
        if entry not in entries:
            raise UsageError(f"the module has no entry {entry}; it has: {', '.join(entries) or 'none'}")
        return entries.index(entry)

    def fetches(self, entry: str) -> bool:
        """Whether a kernel fetches from textures. Its check asks the driver about them, so the program must not have destroyed them."""
        return any("texture" in function.families for function in self.instrumented.reachable(entry))
