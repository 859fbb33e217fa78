"""The ranks of a program, each a thread. One runs at a time, until it waits for others.

A rank waits in a collective for all others or for some, in a launch for those that launch as well, and for a signal of another one. When
every rank waits, what comes next is decided in this order: signals that have come; a collective that all its ranks have reached; launches,
which are made as one, whatever the others wait for. So launches of several ranks overlap, as they may on GPUs, and the order is the same
in each run. If nothing can go on, each rank gets an error that says what all of them wait for.

Not handled: threads that a rank starts.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol

from consan._errors import NotSupported, UsageError
from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.ranks.memory import SymmetricMemory

MOST_RANKS: Final = 16
_VARIABLES: Final = ("RANK", "LOCAL_RANK")


class JointLaunch(Protocol):
    """A launch that waits for those of other ranks."""

    def together(self, launches: Mapping[int, Any], crew: Crew) -> None:
        """Make the launches of some ranks, among them this one, at the same time."""


class HostOrder(Protocol):
    """A listener that hears of the ends of ranks, and of what their hosts know (consan/session/comparing/rank_launches.py)."""

    def ended(self, rank: int, arrays: Any) -> None:
        """A rank has ended, and with it its arrays."""

    def known_to_host(self, rank: int) -> Any:
        """The launches that the host of a rank knows to be over: another rank, whose host meets it, gives them to `host_knows`."""

    def host_knows(self, over: Any) -> None:
        """The host of the rank that runs knows them to be over, too."""


class HostOperated(Protocol):
    """A listener that hears of the operations of the ranks on tensors (consan/adapters/distributed/operations.py)."""

    def shares(self, tensor: Any) -> bool:
        """Whether a tensor is of symmetric memory."""

    def done(self, name: str, reads: Sequence[Any], writes: Sequence[Any], *, certain: bool = True, to_host: bool = False) -> None:
        """The rank that runs has made an operation."""


class StuckRanksError(UsageError):
    """All ranks wait for each other."""


@dataclass
class _Rank:
    """The event that a rank waits for; nothing while it may run."""

    what: str = ""  # in the words of a report
    collective: tuple[str, Sequence[int]] | None = None  # all that must be alike in its ranks, and these
    given: Any = None
    come: Callable[[], bool] | None = None  # whether what it waits for has come
    launch: JointLaunch | None = None
    result: Any = None
    error: BaseException | None = None
    ended: bool = False
    main: ModuleType | None = None
    thread: int = 0
    pending: dict[Callable[[], Any], None] = field(default_factory=dict)  # waits for what it has begun, and has not waited for
    begun: int = 0  # how many calls of `Crew.in_each` its thread has made

    def goes_on(self, result: Any = None, error: BaseException | None = None) -> None:
        """It has what it has waited for."""
        self.what, self.collective, self.given, self.come, self.launch = "", None, None, None, None
        self.result, self.error = result, error


def _nothing() -> None:
    """Nobody follows what a host knows."""


def _refuse_in_imports(what: str) -> None:
    """Another rank that imports the same module would wait for the lock of that import, and never give up its turn."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame := frame.f_back) is not None:
        if frame.f_code.co_name == "_load_unlocked" and "importlib" in frame.f_code.co_filename:
            name = getattr(frame.f_locals.get("spec"), "name", "")
            said = f"the module {name} waits for {what} while it is imported: all ranks share the modules that a program imports"
            raise NotSupported(f"{said}. Let the script or a function do that")


@dataclass
class Crew:
    """So many ranks."""

    count: int
    memory: SymmetricMemory = field(init=False)  # the adapter makes it
    order: HostOrder | None = None  # who compares launches sets it
    operations: HostOperated | None = None  # the adapter sets it
    device_waits: Callable[[], None] = _nothing  # the host of the rank that runs knows that its device is done
    executing: bool = False

    def __post_init__(self) -> None:
        """Nobody runs yet."""
        self._calls: list[Callable[[], Any]] = []
        self._ranks = [_Rank() for _ in range(self.count)]
        self._turn = 0
        self._changed = threading.Condition()

    @property
    def rank(self) -> int:
        """The rank that runs."""
        return self._turn

    def run(self, body: Callable[[int], int], mains: list[ModuleType]) -> list[int]:
        """Run a program once for each rank, each with a `__main__` of its own. Returns their statuses."""
        statuses = [1] * self.count
        for each, main in zip(self._ranks, mains, strict=True):
            each.main = main

        def one(rank: int) -> None:
            self._ranks[rank].thread = threading.get_ident()
            self._await_turn(rank)
            try:
                statuses[rank] = body(rank)
                if self.order is not None:
                    self.order.ended(rank, self.memory.of(rank))
            finally:
                self._ranks[rank].ended = True
                self._hand_over()

        threads = [threading.Thread(target=one, args=(rank,), name=f"rank {rank}") for rank in range(self.count)]
        os.environ.update({"WORLD_SIZE": str(self.count), "LOCAL_WORLD_SIZE": str(self.count)})
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return statuses

    def in_each(self, call: Callable[[], Any]) -> None:
        """Let the thread of each rank make a call once: now, if it runs, or when it goes on."""
        self._calls.append(call)
        if self._ranks[self._turn].thread == threading.get_ident():
            self._make_calls(self._turn)

    def _make_calls(self, rank: int) -> None:
        mine = self._ranks[rank]
        while mine.begun < len(self._calls):
            mine.begun += 1
            self._calls[mine.begun - 1]()

    # -- what a rank waits for -------------------------------------------------------------------------------------------------------

    def meet(self, what: str, given: Any = None, among: Sequence[int] = ()) -> list[Any]:
        """A collective of all ranks or of some, by its name: what each of them has given. It orders no launches."""
        said = f"{what} of ranks {', '.join(map(str, among))}" if 0 < len(among) < self.count else what
        found: list[Any] = self._wait(what=said, collective=(what, tuple(among) or tuple(range(self.count))), given=given)
        return found

    def until(self, come: Callable[[], bool], what: str) -> None:
        """Wait for something that another rank does."""
        if not come():
            self._wait(what=what, come=come)

    def later(self, wait: Callable[[], Any]) -> Callable[[], None]:
        """The rank that runs has begun something: a wait for its device is one for that, until the result of this is called."""
        pending = self._ranks[self._turn].pending
        pending[wait] = None

        def over() -> None:
            pending.pop(wait, None)

        return over

    def synchronize(self) -> None:
        """The host of the rank that runs waits for its device."""
        mine = self._ranks[self._turn]
        for wait in list(mine.pending):
            wait()
        mine.pending.clear()
        self.device_waits()

    def launch(self, launch: JointLaunch, name: str) -> None:
        """A launch, made when the others have come to theirs or wait."""
        self._wait(what=f"the launch of {name}", launch=launch)

    def _wait(self, **how: Any) -> Any:
        _refuse_in_imports(how["what"])
        rank = self._turn
        mine = self._ranks[rank]
        for name, value in how.items():
            setattr(mine, name, value)
        self._hand_over()
        self._await_turn(rank)
        result, error, mine.result, mine.error = mine.result, mine.error, None, None
        if error is not None:
            raise error
        return result

    # -- who runs ------------------------------------------------------------------------------------------------------------------------

    def _await_turn(self, rank: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == rank and not self._ranks[rank].what)
        main = self._ranks[rank].main
        if main is not None:
            sys.modules["__main__"] = main
        os.environ.update(dict.fromkeys(_VARIABLES, str(rank)))
        self._make_calls(rank)

    def _hand_over(self) -> None:
        """Let the next rank run that can."""
        while not self._next():
            alive = [each for each in self._ranks if not each.ended]
            if not alive:
                return
            self._decide(alive)

    def _next(self) -> bool:
        for step in range(1, self.count + 1):
            rank = (self._turn + step) % self.count
            each = self._ranks[rank]
            if each.come is not None and each.come():
                each.goes_on()
            if not each.ended and not each.what:
                with self._changed:
                    self._turn = rank
                    self._changed.notify_all()
                return True
        return False

    def _decide(self, alive: list[_Rank]) -> None:
        """All ranks wait: what comes next."""
        if any(each.collective is not None and self._met(*each.collective) for each in alive):
            return
        launches = {rank: each.launch for rank, each in enumerate(self._ranks) if each.launch is not None}
        if launches:
            self._make(launches)
            return
        said = "; ".join(f"rank {rank} {'has ended' if each.ended else f'waits for {each.what}'}" for rank, each in enumerate(self._ranks))
        for each in alive:
            each.goes_on(error=StuckRanksError(f"the ranks wait for each other: {said}"))

    def _met(self, what: str, among: Sequence[int]) -> bool:
        """Whether the ranks of a collective have all reached it: they go on."""
        ranks = [self._ranks[rank] for rank in among]
        if any(each.ended or each.collective != (what, among) for each in ranks):
            return False
        found = [each.given for each in ranks]
        for each in ranks:
            each.goes_on(found)
        return True

    def _make(self, launches: Mapping[int, JointLaunch]) -> None:
        error = None
        self.executing = True
        try:
            next(iter(launches.values())).together(launches, self)
        except BaseException as raised:
            error = raised
        finally:
            self.executing = False
        for rank in launches:
            self._ranks[rank].goes_on(error=error)


_OPEN: list[Crew] = []


def current() -> Crew | None:
    """The ranks of the program that runs; None outside of `consan run --ranks`."""
    return _OPEN[-1] if _OPEN else None


def refuse_alone(entry: str) -> None:
    """Raise `NotSupported` for a launch that does not wait for those of other ranks."""
    if _OPEN and not _OPEN[-1].executing:
        raise NotSupported(f"{entry}: with --ranks only kernels of Triton can be launched")


def begin(crew: Crew) -> Callable[[], None]:
    """From now on this crew is the current one. Returns what ends that."""
    _OPEN.append(crew)
    return lambda: _OPEN.remove(crew)
