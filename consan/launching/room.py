"""Computes the memory that the buffers of a launch take, checks that there is room, and places them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.launching.arguments import ArgSpec, BufferSpec
from consan.launching.members import MembersSpec
from consan.launching.placement import Placement, Value
from consan.launching.scalars import TYPES
from consan.toolchain.host_memory import available_bytes

if TYPE_CHECKING:
    from consan.backends.base import Backend

GiB: Final = 1 << 30


@dataclass(frozen=True)
class Inputs:
    """The arguments of a launch in memory. `values`: the bytes of each parameter."""

    arrays: Sequence[Value]
    placement: Placement
    values: list[bytes]


def bytes_of(specs: Sequence[ArgSpec]) -> int:
    """The bytes of all buffers."""
    members = [each for spec in specs for each in (spec.specs if isinstance(spec, MembersSpec) else [spec])]
    buffers = [spec if isinstance(spec, BufferSpec) else getattr(spec, "buffer", None) for spec in members]
    return sum(math.prod(each.shape) * np.dtype(TYPES[each.type]).itemsize for each in buffers if each is not None)


def check_room(specs: Sequence[ArgSpec], backend: Backend) -> None:
    """Raise UsageError if the buffers do not fit. The virtual machine has a copy of each beside that of the host."""
    taken, machine = bytes_of(specs), backend.allocates_zeros
    room = available_bytes()
    if room is not None and taken * (1 + machine) > room:
        copies = " twice, in the arrays and in the virtual machine" if machine else ""
        raise UsageError(f"--arg: the buffers take {_in_gib(taken)}{copies}, and {_in_gib(room)} of memory are free")
    if not machine and taken > backend.free_bytes():
        raise UsageError(f"--arg: the buffers take {_in_gib(taken)}, and {_in_gib(backend.free_bytes())} of the GPU's memory are free")


def placed(specs: Sequence[ArgSpec], backend: Backend, seed: int) -> Inputs:
    """The arguments in memory: arrays with the random contents of a seed, and their copies on the device."""
    placement, arrays = Placement(backend), [spec.materialise(seed) for spec in specs]
    return Inputs(arrays, placement, placement.parameters(arrays, "--arg"))


def described(specs: Sequence[ArgSpec]) -> str:
    """For a line on the terminal."""
    return f"the buffers of --arg take {_in_gib(bytes_of(specs))}"


def _in_gib(number: int) -> str:
    return f"{number / GiB:,.1f} GiB"
