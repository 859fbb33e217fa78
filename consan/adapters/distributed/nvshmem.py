"""The host calls of NVSHMEM for Python (`nvshmem.core` of nvshmem4py) between the ranks of one process.

A call is made at once, in the order of the stream that it names, or of the current one. A put is done at its target behind `quiet`, a
barrier, or the wait for its own signal (NVSHMEM specification, "Memory Ordering"): until then other ranks race with it.

Not handled: names that are missing here. Each is an error with the name.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NoReturn

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed.collectives import REDUCTIONS
from consan.adapters.distributed.operations import HostOperations
from consan.adapters.distributed.order import hosts_meet, meets
from consan.adapters.distributed.symmetric import SymmetricCalls
from consan.ranks.crew import Crew
from consan.ranks.memory import address_of
from consan.session.comparing.program_streams import ProgramStream
from consan.session.comparing.streams import Event

Meets = Callable[[str, Any], list[Any]]
MODULES: Final = ("nvshmem", "nvshmem.core")
_TEAMS: Final = {"TEAM_WORLD": 0, "TEAM_SHARED": 1, "TEAM_NODE": 2}
_SET, _ADD = 9, 10
_COMPARISONS: Final = {"CMP_EQ": operator.eq, "CMP_NE": operator.ne, "CMP_GT": operator.gt, "CMP_LE": operator.le, "CMP_LT": operator.lt,
                       "CMP_GE": operator.ge}  # fmt: skip
_BY_NUMBER: Final = list(_COMPARISONS.values())


class NvshmemCalls:
    """The calls, for all ranks of a crew."""

    def __init__(self, crew: Crew, symmetric: SymmetricCalls, session: Any, operations: HostOperations) -> None:
        self._crew, self._symmetric, self._session, self._operations = crew, symmetric, session, operations
        self._streams = operations.streams
        self._signals: dict[int, list[Event]] = {}  # by address: what each signal there says is over
        self._puts: dict[int, list[tuple[Event, Event]]] = {}  # by rank: those that are not done: behind the call, and behind the put

    def modules(self) -> dict[str, ModuleType]:
        """The modules by their names."""
        package, core = (ModuleType(name) for name in MODULES)
        vars(core).update(self._functions(), __getattr__=_missing)
        vars(package).update(core=core, __path__=[])
        return dict(zip(MODULES, (package, core), strict=True))

    def _functions(self) -> dict[str, Any]:
        crew = self._crew
        barriers = {name: functools.partial(self._meet, name, 1) for name in ("barrier", "sync")}
        of_all = {name: functools.partial(self._meet, name, 0) for name in ("barrier_all", "sync_all", "finalize")}
        return {
            **barriers, **of_all, "init": lambda *args, **how: hosts_meet(crew, "nvshmem init") and None,
            "my_pe": lambda: crew.rank, "n_pes": lambda: crew.count,
            "team_my_pe": lambda team: self._team(team) or crew.rank, "team_n_pes": lambda team: self._team(team) or crew.count,
            "get_unique_id": lambda empty=False: SimpleNamespace(),
            "tensor": self._tensor, "free_tensor": functools.partial(self._meet, "free", 1), "get_peer_tensor": self._peer,
            "put": self._put, "put_nbi": self._put, "get": self._get, "get_nbi": self._get,
            "put_signal": self._put_signal, "put_signal_nbi": self._put_signal, "signal_op": self._signal, "signal_wait": self._wait,
            "signal_fetch": lambda signal_var: int(self._word(signal_var)[0]),
            "quiet": self._quiet,
            **{name: functools.partial(self._collective, name) for name in ("broadcast", "fcollect", "reduce")},
            "Teams": SimpleNamespace(**_TEAMS), "SignalOp": SimpleNamespace(SIGNAL_SET=_SET, SIGNAL_ADD=_ADD),
            "ComparisonType": SimpleNamespace(**{name: number for number, name in enumerate(_COMPARISONS)}),
        }  # fmt: skip

    def _team(self, team: Any) -> int:
        if team not in _TEAMS.values() and team not in _TEAMS:
            raise NotSupported(f"nvshmem.core: with --ranks there are the teams of all ranks, and not {team!r}")
        return 0

    def _meet(self, name: str, teams: int, *args: Any, stream: Any = None, **how: Any) -> None:
        """All ranks meet. The first argument of a barrier is its team."""
        if teams and name != "free":
            self._team(args[0] if args else how["team"])
        self._quiet(stream)
        meets(self._crew, self._in(stream), f"nvshmem {name}")

    def _in(self, stream: Any) -> ProgramStream:
        """The stream that an argument names: an object of torch, of CuPy or of cuda.core, or a handle."""
        protocol = getattr(stream, "__cuda_stream__", None)
        names = [getattr(stream, name, None) for name in ("cuda_stream", "ptr")] + [protocol()[1] if callable(protocol) else stream]
        handle = next((each for each in names if isinstance(each, int)), None)
        return self._operations.stream if handle is None else self._streams.of(handle)

    def _tensor(self, shape: Sequence[int], dtype: Any = None, **how: Any) -> Any:
        made = self._symmetric.empty(tuple(shape), dtype=dtype)
        self._symmetric.rendezvous(made)
        return made

    def _word(self, tensor: Any, peer_pe: int | None = None) -> Any:
        return self._symmetric.word_of(tensor, self._crew.rank if peer_pe is None else peer_pe)

    def _peer(self, tensor: Any, peer_pe: int | None = None) -> Any:
        return self._symmetric.part_of(tensor, self._crew.rank if peer_pe is None else peer_pe)

    # -- operations on a stream ------------------------------------------------------------------------------------------------------

    def _put(self, dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> Sequence[Any]:
        """Gives what is over with its signal."""
        there, where = self._peer(dst, remote_pe), self._in(stream)
        library = self._streams.behind(where)
        with self._operations.part_of("nvshmem put", stream=library, behind=False, of_one=False):
            there.copy_(src.reshape(there.shape))
        with self._operations.part_of("nvshmem put", stream=where, behind=False, of_one=True):
            self._operations.done("put", [src], [])
        self._puts.setdefault(self._crew.rank, []).append((where.record(), made := library.record()))
        return [made]

    def _get(self, dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
        with self._operations.part_of("nvshmem get", stream=self._in(stream), behind=False):
            dst.copy_(self._peer(src, remote_pe).reshape(dst.shape))
        self._quiet(stream)

    def _quiet(self, stream: Any = None) -> None:
        """The puts are done that were made before, in the order of the stream."""
        where, left = self._in(stream), self._streams.concurrent.timeline.left
        puts = self._puts.pop(self._crew.rank, [])
        self._puts[self._crew.rank] = [each for each in puts if not left(each[0].over) <= where.before]
        for _, made in (each for each in puts if each not in self._puts[self._crew.rank]):
            where.wait(made)

    def _put_signal(
        self, dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1, stream: Any = None
    ) -> None:
        own = self._put(dst, src, remote_pe, stream)
        self._signal(signal_var, signal_val, signal_op, remote_pe, stream, own=own)

    def _signal(
        self, signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1, stream: Any = None, *, own: Sequence[Any] = ()
    ) -> None:
        word = self._word(signal_var, remote_pe)
        adds, at = signal_op == _ADD, address_of(word)
        word[0] = int(word[0]) + signal_val if adds else signal_val
        known = self._signals.setdefault(at, []) if adds else []
        self._signals[at] = [*known, self._in(stream).record(), *own]

    def _wait(self, signal_var: Any, signal_val: int, signal_op: int = 0, stream: Any = None) -> None:
        word, holds = self._word(signal_var), _BY_NUMBER[signal_op]
        self._crew.until(lambda: holds(int(word[0]), signal_val), f"a signal of nvshmem ({signal_val})")
        for each in self._signals.get(address_of(word), []):
            self._in(stream).wait(each)

    # -- collectives -----------------------------------------------------------------------------------------------------------------

    def _collective(self, name: str, team: Any, *args: Any, stream: Any = None, **how: Any) -> None:
        self._team(team)
        with self._operations.part_of(f"nvshmem {name}", stream=self._in(stream), behind=False) as where:
            getattr(self, f"_{name}")(functools.partial(meets, self._crew, where), *args, **how)

    def _broadcast(self, meet: Meets, dst_array: Any, src_array: Any, root: int = 0) -> None:
        dst_array.copy_(meet(f"nvshmem broadcast from {root}", src_array.clone())[root].reshape(dst_array.shape))

    def _fcollect(self, meet: Meets, dst_array: Any, src_array: Any) -> None:
        parts = dst_array.reshape(self._crew.count, -1)
        for rank, given in enumerate(meet("nvshmem fcollect", src_array.clone())):
            parts[rank] = given.reshape(-1)

    def _reduce(self, meet: Meets, dst_array: Any, src_array: Any, op: str) -> None:
        combine: Callable[[Any, Any], Any] | None = REDUCTIONS.get(op.upper())
        if combine is None:
            raise UsageError(f"nvshmem.core.reduce: {op}: expected sum, min or max")
        dst_array.copy_(functools.reduce(combine, meet(f"nvshmem reduce ({op})", src_array.clone())).reshape(dst_array.shape))


def _missing(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSupported(f"nvshmem.core.{name}: not served with --ranks")
