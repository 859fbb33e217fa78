"""The options of a session as one frozen record. Commands, the API, pytest and child processes hand it through unchanged.

The record has the options of `SESSION` and `RUN` (consan/options.py), with their names and defaults.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any, Final

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.options import (
    ASSEMBLIES,
    AUTO,
    DEVICES,
    ENGINES,
    GLOBALS,
    INLINE,
    ISA,
    POLICIES,
    KernelFilter,
    check_names,
    read_kernel_filter,
)

OFF: Final = "off"
LONGEST_COMPILATION: Final = 0.3  # seconds of processor time, of the kernel as it runs
MOST_CHARACTERS: Final = 1 << 17  # of its PTX
MOST_EXECUTED: Final = 1 << 20  # instructions of its threads
MOST_MEMORY: Final = 64 << 20  # bytes of the program's memory that are kept, for a launch that is made again
MOST_THREADS: Final = 1 << 16  # of a launch that the virtual machine makes behind a GPU


@dataclass(frozen=True)
class LaunchFilter:
    """Which launches are checked: those of `kernel_name`, without the first `launch_skip`, and `launch_count` at most.

    `explore`, `prove`: seconds for other schedules of them, in all, and for proofs. `unoptimized`: whether they are compared with those of
    kernels that are compiled without optimisation.
    `gpus`: the devices of the virtual machine, whose launches are compared.
    `overhead`: the share by which checking may slow the program. None: any. Raises `UsageError` for one that is no share.
    """

    kernel_name: KernelFilter | None = None
    launch_skip: int = 0
    launch_count: int | None = None
    explore: float | None = None
    overhead: float | None = None
    prove: float = 0.0
    unoptimized: str = AUTO
    gpus: int = 1

    def __post_init__(self) -> None:
        """A share of zero would leave out what is always looked at."""
        if self.overhead is not None and not 0 < self.overhead < math.inf:
            raise UsageError(f"overhead={self.overhead!r}: expected a share above zero")


@dataclass(frozen=True)
class SessionOptions:
    """The options of a session. `UsageError` for a value that is none, and for options that exclude each other."""

    device: str = "auto"
    seed: int = 0
    policy: str = "default"
    filter: LaunchFilter = field(default_factory=LaunchFilter)
    timeout: float | None = None
    shadow_memory: int | None = None
    assembly: str = "best"
    engine: str = "auto"
    global_memory: str = "auto"
    trace_memory: int | None = None
    exhaustive: bool = False
    sample: int | None = None
    keep_histories: bool = False
    triton_arch: str = "sm_90"
    skip_benchmarks: bool = False

    def __post_init__(self) -> None:
        """A misspelt device or policy must not select another one."""
        for name, known in _CHOICES.items():
            if (value := getattr(self, name)) not in known:
                raise UsageError(f"{name}={value!r}: expected {' or '.join(map(repr, known))}")
        for name, (is_one, what) in _VALUES.items():
            if not is_one(value := getattr(self, name)):
                raise UsageError(f"{name}={value!r}: expected {what}")
        for why in _excluded(self):
            raise UsageError(why)

    @property
    def chip(self) -> str:
        """The virtual device's architecture with its features: `sm_90a`."""
        return self.triton_arch if self.triton_arch == "sm_80" else f"{self.triton_arch}a"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SessionOptions:
        """The options by their names. `UsageError` for a name that is none."""
        check_names(given, NAMES)
        of_filter = {name: value for name, value in given.items() if name in _OF_FILTER}
        others = {name: value for name, value in given.items() if name not in _OF_FILTER}
        return cls(filter=LaunchFilter(**of_filter), **others)

    @classmethod
    def in_arguments(cls, arguments: argparse.Namespace) -> SessionOptions:
        """The options among the arguments of a command; those that it does not have keep their defaults."""
        return cls.of({name: getattr(arguments, name) for name in NAMES if hasattr(arguments, name)})

    @classmethod
    def restored(cls, given: Mapping[str, Any]) -> SessionOptions:
        """The options that `stored` has given, in another process."""
        text = given["kernel_name"]
        return cls.of({**given, "kernel_name": None if text is None else read_kernel_filter(text)})

    def stored(self) -> dict[str, Any]:
        """The options by their names, as values of JSON."""
        kernel = self.filter.kernel_name
        values = {**vars(self), **vars(self.filter), "kernel_name": None if kernel is None else kernel.text}
        return {name: values[name] for name in NAMES}

    @property
    def explore(self) -> float | None:
        """Seconds for other schedules of the launches that are checked."""
        return self.filter.explore

    @property
    def gpus(self) -> int:
        """The devices of the virtual machine."""
        return self.filter.gpus

    @property
    def prove(self) -> float:
        """Seconds for proofs that no launch of a kernel has a race."""
        return self.filter.prove

    def alone(self, explore: float = 0.0, **changes: Any) -> SessionOptions:
        """The same for one launch that the filter has taken, with some changes. `explore`: seconds for its other schedules."""
        return replace(self, filter=LaunchFilter(explore=explore, unoptimized=OFF), **changes)

    @property
    def unoptimized(self) -> str:
        """Whether launches are compared with those of kernels that are compiled without optimisation."""
        return self.filter.unoptimized

    @property
    def isa(self) -> bool:
        """Whether the strict reading of the ISA holds."""
        return self.policy == ISA

    @property
    def global_required(self) -> bool:
        """Whether a report is incomplete where global memory was not checked."""
        return self.global_memory == "on"

    @property
    def global_wanted(self) -> bool:
        """Whether global memory is checked where kernels are recorded."""
        return self.global_memory != "off"

    @property
    def global_excluded(self) -> bool:
        """Whether the user does not want global memory to be checked: called hooks do not look at it."""
        return self.engine == INLINE or self.global_memory == "off"

    @property
    def records(self) -> bool:
        """Whether kernels are recorded; else they take called hooks."""
        return self.engine != INLINE

    @property
    def remembers(self) -> bool:
        """Whether what earlier processes have recorded and replayed is used again."""
        return True

    @property
    def looks_at_global(self) -> bool:
        """Whether races in global memory are looked for."""
        return self.global_wanted and self.records


def is_quickly_compared(seconds: float, characters: int, executed: int) -> bool:
    """Whether `--unoptimized auto` compares a kernel with the one compiled without optimisation: its compilation, PTX and launch."""
    return seconds < LONGEST_COMPILATION and characters <= MOST_CHARACTERS and executed <= MOST_EXECUTED


_CHOICES: Final = {
    "device": DEVICES,
    "policy": POLICIES,
    "assembly": ASSEMBLIES,
    "engine": ENGINES,
    "global_memory": GLOBALS,
    "unoptimized": GLOBALS,
}
_MOST_GPUS: Final = 16
_VALUES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "seed": (lambda value: isinstance(value, int), "a whole number"),
    "shadow_memory": (lambda value: value is None or (isinstance(value, int) and value > 0), "a number of bytes above zero"),
    "timeout": (lambda value: value is None or (isinstance(value, (int, float)) and 0 < value < math.inf), "a time in seconds above zero"),
    "explore": (lambda value: value is None or (isinstance(value, (int, float)) and 0 <= value < math.inf), "a time in seconds, 0 or more"),
    "prove": (lambda value: isinstance(value, (int, float)) and 0 <= value < math.inf, "a time in seconds, 0 or more"),
    "gpus": (lambda value: isinstance(value, int) and 0 < value <= _MOST_GPUS, f"a number of devices from 1 to {_MOST_GPUS}"),
    "sample": (lambda value: value is None or (isinstance(value, int) and value > 0), "a number of CTAs above zero"),
}
_OF_FILTER: Final = tuple(each.name for each in fields(LaunchFilter))
NAMES: Final = (*_OF_FILTER, *(each.name for each in fields(SessionOptions) if each.name != "filter"))
"""The names of all options."""


def _excluded(options: SessionOptions) -> Iterator[str]:
    """Why options exclude each other."""
    if options.global_required and options.engine == INLINE:
        yield f"--global on: --engine {options.engine} does not look for races in global memory"
    if options.sample is not None and options.exhaustive:
        yield "--sample and --exhaustive exclude each other"
    if options.sample is not None and options.global_required:
        yield "--sample: not with --global on, which compares all CTAs"
    if options.keep_histories and not options.records:
        yield "--keep-histories: only --engine record has histories to keep"
