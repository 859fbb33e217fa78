"""The host calls of NVSHMEM for Python (`nvshmem.core` of nvshmem4py) between the ranks of one process.

A call on a stream is made at once: a rank has one stream, and its launches are over when they return. A put is done at its target behind
`quiet`, a barrier, or the wait for its own signal (NVSHMEM specification, "Memory Ordering"): until then other ranks race with it.

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
from consan.adapters.distributed.order import order_of
from consan.adapters.distributed.symmetric import SymmetricCalls
from consan.ranks.crew import Crew
from consan.ranks.memory import address_of

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
        self._signals: dict[int, list[Any]] = {}  # by address: what each signal there says is over

    def modules(self) -> dict[str, ModuleType]:
        """The modules by their names."""
        package, core = (ModuleType(name) for name in MODULES)
        vars(core).update(self._functions(), __getattr__=_missing)
        vars(package).update(core=core, __path__=[])
        return dict(zip(MODULES, (package, core), strict=True))

    def _functions(self) -> dict[str, Any]:
        crew = self._crew
        barriers = {name: functools.partial(self._meet, name, 1) for name in ("barrier", "sync")}
        of_all = {name: functools.partial(self._meet, name, 0) for name in ("barrier_all", "sync_all", "init", "finalize")}
        return {
            **barriers, **of_all,
            "my_pe": lambda: crew.rank, "n_pes": lambda: crew.count,
            "team_my_pe": lambda team: self._team(team) or crew.rank, "team_n_pes": lambda team: self._team(team) or crew.count,
            "get_unique_id": lambda empty=False: SimpleNamespace(),
            "tensor": self._tensor, "free_tensor": functools.partial(self._meet, "free", 1), "get_peer_tensor": self._peer,
            "put": self._put, "put_nbi": self._put, "get": self._get, "get_nbi": self._get,
            "put_signal": self._put_signal, "put_signal_nbi": self._put_signal, "signal_op": self._signal, "signal_wait": self._wait,
            "signal_fetch": lambda signal_var: int(self._word(signal_var)[0]),
            "quiet": self._quiet,
            **{name: self._operations.parts_of(f"nvshmem {name}", getattr(self, f"_{name}"))
               for name in ("broadcast", "fcollect", "reduce")},
            "Teams": SimpleNamespace(**_TEAMS), "SignalOp": SimpleNamespace(SIGNAL_SET=_SET, SIGNAL_ADD=_ADD),
            "ComparisonType": SimpleNamespace(**{name: number for number, name in enumerate(_COMPARISONS)}),
        }  # fmt: skip

    def _team(self, team: Any) -> int:
        if team not in _TEAMS.values() and team not in _TEAMS:
            raise NotSupported(f"nvshmem.core: with --ranks there are the teams of all ranks, and not {team!r}")
        return 0

    def _meet(self, name: str, teams: int, *args: Any, **how: Any) -> None:
        """All ranks meet. The first argument of a barrier is its team."""
        if teams and name != "free":
            self._team(args[0] if args else how["team"])
        self._crew.meet(f"nvshmem {name}")

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
        there = self._peer(dst, remote_pe)
        with self._operations.part_of("nvshmem put", pending=True) as begun:
            there.copy_(src.reshape(there.shape))
        return begun

    def _get(self, dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
        with self._operations.part_of("nvshmem get"):
            dst.copy_(self._peer(src, remote_pe).reshape(dst.shape))
        self._quiet()

    def _quiet(self, stream: Any = None) -> None:
        order = order_of(self._crew, self._session)
        if order is not None:
            order.completed(self._crew.rank)

    def _put_signal(
        self, dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1, stream: Any = None
    ) -> None:
        own = self._put(dst, src, remote_pe)
        self._signal(signal_var, signal_val, signal_op, remote_pe, own=own)

    def _signal(
        self, signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1, stream: Any = None, *, own: Sequence[Any] = ()
    ) -> None:
        order, word = order_of(self._crew, self._session), self._word(signal_var, remote_pe)
        adds, at = signal_op == _ADD, address_of(word)
        word[0] = int(word[0]) + signal_val if adds else signal_val
        known = self._signals.setdefault(at, []) if adds else []
        over = [] if order is None else [*order.sent(self._crew.rank), *own]
        self._signals[at] = [*known, *over]

    def _wait(self, signal_var: Any, signal_val: int, signal_op: int = 0, stream: Any = None) -> None:
        word, holds = self._word(signal_var), _BY_NUMBER[signal_op]
        self._crew.until(lambda: holds(int(word[0]), signal_val), f"a signal of nvshmem ({signal_val})")
        order = order_of(self._crew, self._session)
        if order is not None:
            order.received(self._crew.rank, self._signals.get(address_of(word), []))

    # -- collectives -----------------------------------------------------------------------------------------------------------------

    def _broadcast(self, team: Any, dst_array: Any, src_array: Any, root: int = 0, stream: Any = None) -> None:
        self._team(team)
        dst_array.copy_(self._crew.meet(f"nvshmem broadcast from {root}", src_array.clone())[root].reshape(dst_array.shape))

    def _fcollect(self, team: Any, dst_array: Any, src_array: Any, stream: Any = None) -> None:
        self._team(team)
        parts = dst_array.reshape(self._crew.count, -1)
        for rank, given in enumerate(self._crew.meet("nvshmem fcollect", src_array.clone())):
            parts[rank] = given.reshape(-1)

    def _reduce(self, team: Any, dst_array: Any, src_array: Any, op: str, stream: Any = None) -> None:
        self._team(team)
        combine: Callable[[Any, Any], Any] | None = REDUCTIONS.get(op.upper())
        if combine is None:
            raise UsageError(f"nvshmem.core.reduce: {op}: expected sum, min or max")
        dst_array.copy_(functools.reduce(combine, self._crew.meet(f"nvshmem reduce ({op})", src_array.clone())).reshape(dst_array.shape))


def _missing(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSupported(f"nvshmem.core.{name}: not served with --ranks")
