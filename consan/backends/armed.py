"""Launches of the program that repeat, with the work around them by C (source/armed.h).

Python arms a launch with all that does not change. A program that calls `cuLaunchKernel` by a pointer gets a function of C in its place,
which makes launches that are alike without the interpreter. Before Triton's launcher stands a callable of C (source/launcher.h): it makes
those that need no slot without a function of Python. Other launches call C before and behind them (`Armed.begin`, `Armed.end`).
C looks at the receipts, and leaves all else to Python. `Armed.take_back` says what was done: until then nobody else touches the memory of
its slots. The values of the parameters may differ: C counts the launches of each set of values.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from consan._errors import EnvironmentFailure
from consan.backends.base import FollowedLaunch
from consan.backends.call_filter import FILTER
from consan.backends.cost import COST
from consan.dataclass import dataclass

MOST_SLOTS: Final = 32  # of armed.h
_MOST_SETS: Final = 128
_NUMBERS: Final = 6  # numbers, and one of each slot
Values = tuple[bytes, ...]
S = TypeVar("S")  # a launch takes one, and gives it back
_WORD: Final = ctypes.c_uint64
_ADDRESS: Final = ctypes.c_void_p
_FORMS: Final = {
    "consan_launches": (None, (_ADDRESS, _ADDRESS)),
    "consan_arm": (_ADDRESS, (_ADDRESS, _ADDRESS, _ADDRESS, _WORD, _WORD, _WORD)),
    "consan_arm_values": (None, (_ADDRESS, _WORD, _ADDRESS, _ADDRESS, _ADDRESS)),
    "consan_arm_slot": (None, (_ADDRESS, _ADDRESS, _ADDRESS, _WORD)),
    "consan_arm_instead": (None, (_ADDRESS, _ADDRESS, _WORD, _ADDRESS, _ADDRESS)),
    "consan_arm_begin": (None, (_ADDRESS, ctypes.c_char_p, _WORD, _WORD)),
    "consan_begin": (_WORD, (_ADDRESS,)),
    "consan_end": (None, (_ADDRESS, ctypes.c_int)),
    "consan_take_back": (None, (_ADDRESS, _ADDRESS)),
    "consan_next_number": (_WORD, ()),
    "consan_shares": (_WORD, (ctypes.c_int,)),
    "consan_exchange": (_WORD, (_ADDRESS, _WORD)),
}
_OBJECT: Final = ctypes.py_object
_OF_PYTHON: Final = {  # they are called with the interpreter
    "consan_begin": _FORMS["consan_begin"],
    "consan_launchers": (ctypes.c_int, (_WORD, _OBJECT, _OBJECT, _OBJECT)),
    "consan_launcher": (_OBJECT, (_OBJECT, _OBJECT, _OBJECT, ctypes.c_char_p, _WORD)),
}
MOST_PACKED: Final = 64  # of launcher.h: arguments


class ArmedSlot(NamedTuple):
    """The work around a launch, and the slip of its receipt: their addresses. `number`: of the launch that uses it; 0: none."""

    around: int
    slip: int
    number: int


@dataclass(frozen=True)
class MadeLaunches:
    """Counts of work. `launches`: those that C has made, by the values of their parameters; `equal`: launches with the receipt.

    `last`: the slot that was used last; `busy`: that of a launch which Python makes now; `numbers`: of the launches in the slots.
    """

    launches: Mapping[Values, int]
    equal: int
    seconds: float
    status: int
    last: int
    busy: int | None
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class AlikeParameters:
    """The memory that C has for the values of parameters."""

    sizes: Any
    sets: Any
    times: Any

    @classmethod
    def of(cls, values: Sequence[bytes]) -> AlikeParameters:
        """Those of the launch before come first."""
        sets = ctypes.create_string_buffer(b"".join(values), max(_MOST_SETS * sum(map(len, values)), 1))
        return cls((_WORD * len(values))(*map(len, values)), sets, (_WORD * _MOST_SETS)())

    def launches(self, count: int) -> dict[Values, int]:
        """Launches by their values, of so many sets."""
        ends = list(itertools.accumulate(self.sizes, initial=0))
        starts = (at * ends[-1] for at in range(count))
        found = (tuple(self.sets.raw[at + begin : at + end] for begin, end in itertools.pairwise(ends)) for at in starts)
        return {values: times for values, times in zip(found, self.times, strict=False) if times}


class ArmedLaunch(Protocol):
    """A launch that is armed: here (`Armed`), or in another process."""

    slots: int

    def begin(self) -> int | None:
        """Before a launch that Python makes: its slot, 0 where there are none. None: it is not made like this."""

    def end(self, *, made: bool) -> None:
        """Behind one that has a slot. `made`: whether the driver has taken it."""

    def take_back(self) -> MadeLaunches | None:
        """Take it back. None: it was taken back before."""


class Arms(Protocol):
    """Arms launches."""

    def arm(self, arming: Arming, lent: Lent[Any]) -> ArmedLaunch | None:
        """Arm launches. None: too many are armed."""


class Armed:
    """A launch that is armed. `retained`: what C has the addresses of."""

    def __init__(self, functions: ArmedFunctions, handle: int, slots: int, parameters: AlikeParameters, retained: object) -> None:
        self._functions, self._handle, self.slots, self._parameters, self._retained = functions, handle, slots, parameters, retained
        self._begin = functions.begin if slots else functions.begin_alone

    def begin(self) -> int | None:
        """Before a launch that Python makes: its slot, 0 where there are none. None: it is not made like this."""
        slot: int = self._begin(self._handle)
        return slot - 1 if slot else None

    def end(self, *, made: bool) -> None:
        """Behind one that has a slot. `made`: whether the driver has taken it."""
        self._functions.end(self._handle, made)

    def take_back(self) -> MadeLaunches | None:
        """Take it back. None: it was taken back before."""
        handle, self._handle = self._handle, 0
        if not handle:
            return None
        words = (ctypes.c_int64 * (_NUMBERS + self.slots))()
        self._functions.call("consan_take_back", handle, ctypes.addressof(words))
        sets, equal, nanoseconds, status, last, busy, *numbers = words
        launches = self._parameters.launches(sets)
        return MadeLaunches(launches, equal, nanoseconds * 1e-9, status, last, busy - 1 if busy else None, tuple(numbers))

    def __del__(self) -> None:
        self.take_back()


def _words_of(value: bytes) -> tuple[int, int]:
    """The bytes in the words that C has."""
    return struct.unpack("<QQ", value.ljust(16, b"\0"))


class ArmedFunctions:
    """The functions of C. Raises `EnvironmentFailure` or `OSError` without C."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        library = library or FILTER.load()
        self._functions: dict[str, Any] = {}
        for name, (result, arguments) in _FORMS.items():
            function = library[name]  # one of its own: `restype` of an attribute is everybody's
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
        self.begin, self.end = self._functions["consan_begin"], self._functions["consan_end"]
        self.begin_alone = self._keeping(library, "consan_begin")  # without slots it calls nothing that waits
        self._library = library
        self._launch = ctypes.cast(library.consan_launch, ctypes.c_void_p).value

    def _keeping(self, library: ctypes.CDLL, name: str) -> Any:
        """A function that keeps the interpreter, so it waits for no thread."""
        function = ctypes.PyDLL(library._name, handle=library._handle)[name]
        function.restype, function.argtypes = _OF_PYTHON[name]
        return function

    @functools.cached_property
    def _launcher(self) -> Any:
        """Makes launchers of Triton's."""
        self._keeping(self._library, "consan_launchers")(object.__basicsize__, None, int, "data_ptr")
        return self._keeping(self._library, "consan_launcher")

    def before(self, otherwise: Any, plain: Any, unheard: object, kinds: bytes) -> Any:
        """A callable that stands before `plain`, Triton's launcher, and makes the launches that are armed. `otherwise` makes the others.

        `unheard`: metadata of launches that no hook hears of. `kinds`: of the arguments, at most `MOST_PACKED`.
        """
        return self._launcher(otherwise, plain, unheard, kinds, len(kinds))

    def call(self, name: str, *given: Any) -> Any:
        """Call one."""
        return self._functions[name](*given)

    def replaces(self, real: Any, otherwise: Any) -> int:
        """Have C make launches by a function of the driver, and call another one for those that it does not make. Gives the address."""
        self.call("consan_launches", *(ctypes.cast(each, ctypes.c_void_p) for each in (real, otherwise)))
        return self._launch or 0

    def shares(self, *, more: bool = False) -> int:
        """How often the process has begun to share memory with others. `more`: it does now, so that C makes none of the armed launches."""
        return int(self.call("consan_shares", more))

    def arm(self, arming: Arming, lent: Lent[Any]) -> Armed | None:
        """Arm launches. None: too many are armed."""
        words, parameters = (_WORD * len(arming.key))(*arming.key), AlikeParameters.of(arming.values)
        handle = self.call("consan_arm", ctypes.addressof(words), arming.here, *(arming.followed or (None, 0, 0)), arming.sharings)
        if not handle:
            return None
        places = map(ctypes.addressof, (parameters.sizes, parameters.sets, parameters.times))
        self.call("consan_arm_values", handle, len(arming.values), *places)
        for slot in lent.slots:
            self.call("consan_arm_slot", handle, *slot)
        deciding = [word for *place, value in lent.decides for word in (*place, len(value), *_words_of(value))]
        decides = (_WORD * len(deciding))(*deciding)
        over = None if lent.over is None else ctypes.addressof(lent.over)
        self.call("consan_arm_instead", handle, lent.instead, len(lent.decides), ctypes.addressof(decides), over)
        self.call("consan_arm_begin", handle, lent.receipt, len(lent.receipt), lent.last)
        return Armed(self, handle, len(lent.slots), parameters, (lent.receipt, decides, lent.over))


class Arming(NamedTuple):
    """The facts that C needs.

    `key`: the parameters of the driver's function, up to the stream; `values`: those of the kernel's first parameters in the launch before.
    `here`: the address of work in the session's context; `followed`: how the launch is noted. None: nobody follows calls.
    `sharings`: what `ArmedFunctions.shares` gave before it was looked whether the process shares memory.
    """

    functions: Arms
    key: Sequence[int]
    values: Sequence[bytes]
    here: int
    followed: FollowedLaunch | None
    sharings: int = 0


class Lent(NamedTuple, Generic[S]):
    """The arguments for C. `taken`: what launches take, and their `slots`; `last`: the one that was used last.

    `instead`: the kernel that is launched, if it is another one. `decides`: bytes that parameters must have: the number of
    one, the place in it, at most 16 bytes. `over`: C makes none once it is not 0.
    """

    taken: Sequence[S]
    slots: Sequence[ArmedSlot] = ()
    last: int = 0
    receipt: bytes = b""
    instead: int = 0
    decides: Sequence[tuple[int, int, bytes]] = ()
    over: ctypes.c_int64 | None = None


class AlikeLaunches(ABC, Generic[S]):
    """Launches that are made alike, and the only owner of what C has of them.

    The caller of `resume`, `begin`, `end` and `arm` holds the device, and that of `take_back` the lock.
    """

    lock: threading.RLock  # of the launches in flight
    times: dict[Values | None, int]  # launches that are not counted yet, by their parameters
    instead: int = 0  # the handle of the kernel that is launched in place of the recorded one; 0: none
    armed: ArmedLaunch | None = None  # C has them
    known: Values | None = None  # parameters of one, as long as they are one of them
    by_itself: ClassVar[bool] = True  # whether C may make them without Python
    _taken: Sequence[S] = ()
    _resumed: S | None = None  # of the launch that is made now, if it is an armed one

    @abstractmethod
    def begin(self) -> S | None:
        """Before a launch that is not armed. None: it is made otherwise."""

    @abstractmethod
    def ended(self, taken: S) -> None:
        """Behind it."""

    @abstractmethod
    def left(self, taken: S) -> None:
        """It was not made."""

    @abstractmethod
    def lends(self) -> Lent[S] | None:
        """The arguments for C to make launches. None: it makes none."""

    @abstractmethod
    def lent(self) -> None:
        """C has it."""

    @abstractmethod
    def taken_back(self, taken: Sequence[S], made: MadeLaunches) -> None:
        """C has made launches."""

    @property
    def asks(self) -> bool:
        """Whether their parameters are wanted."""
        return False

    def covers(self, args: Values | None) -> bool:
        """Whether a launch with these parameters is one of them."""
        return True

    def resume(self) -> S | None:
        """Before a launch that is armed. None: it is not."""
        with self.lock:
            at = None if self.armed is None else self.armed.begin()
            self._resumed = None if at is None else self._taken[at]
            return self._resumed

    def end(self, taken: S, args: Values | None, *, made: bool = True) -> None:
        """Behind a launch with these parameters, if it was `made`. C ends an armed one that was not taken back since it began."""
        with self.lock:
            if made:
                self.times[args] = self.times.get(args, 0) + 1
            resumed, self._resumed = self._resumed, None
            if self.armed is not None and resumed is taken:
                if self.armed.slots:
                    self.armed.end(made=made)
                return
            if not made:
                self.left(taken)
                return
        self.ended(taken)

    def arm(self, arming: Arming) -> None:
        """Let C make the launches that follow, if it can."""
        with self.lock:
            lent = self.lends() if self.armed is None else None
            if lent is None:
                return
            self.armed, self._taken = arming.functions.arm(arming, lent), lent.taken
            if self.armed is not None:
                self.lent()

    def take_back(self) -> None:
        """Make the launches with Python again."""
        armed, self.armed, self._resumed = self.armed, None, None
        made = None if armed is None else armed.take_back()
        if made is not None:
            COST.add(made.seconds)
            for args, times in made.launches.items():
                self.times[args] = self.times.get(args, 0) + times
            self.taken_back(self._taken, made)

    def counts(self) -> dict[Values | None, int]:
        """Take the launches that are not counted yet."""
        with self.lock:
            self.take_back()
            times, self.times = self.times, {}
            return times


@functools.cache
def armed_functions() -> ArmedFunctions | None:
    """The functions of C. None: there is no C here. The process has them once: they share what is armed."""
    try:
        return ArmedFunctions()
    except (EnvironmentFailure, OSError):
        return None


def numbers() -> Callable[[], int] | None:
    """Gives a number that no launch of the process has had; None without C."""
    functions = armed_functions()
    return None if functions is None else lambda: functions.call("consan_next_number")
