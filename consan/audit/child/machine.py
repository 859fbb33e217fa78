"""The virtual machine whose memory the host's code reaches.

Where the place of its memory is taken, the process has to be started again: the system lays out each one anew.
"""

from __future__ import annotations

from consan._errors import EnvironmentFailure
from consan.backends.cpu import Machine
from consan.backends.cpu.state.memory import GLOBAL_BASE, Arena
from consan.backends.cpu.state.placed import memory_in_place
from consan.backends.virtual import VirtualBackend
from consan.session.modules.device import Device


class TakenError(EnvironmentFailure):
    """Something else is where the memory of the machine has to be."""


def new_device() -> Device:
    """A device of this process. Raises TakenError."""
    mapping = memory_in_place()
    if mapping is None:
        raise TakenError(f"the memory of the virtual machine cannot be at {GLOBAL_BASE:#x}")
    return Device(VirtualBackend(Machine(arena=Arena(mapping))))
