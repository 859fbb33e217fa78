"""Gives a loaded module the memory for its next recorded launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from consan.checker.judging.collected import LaunchedKernel
from consan.checker.logs.expand import VirtualExpander
from consan.checker.logs.launch import Launch
from consan.checker.logs.log_lines import USUAL_ROOM, LogRoom
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.pieces import LogForm
from consan.instrument.record import Recorded
from consan.instrument.record.text.text import LAUNCH, PLACES


def start(
    memory: LogMemory, handle: Any, recorded: Recorded, launched: LaunchedKernel, most_bytes: int,
    *, room: LogRoom = USUAL_ROOM, background: bool = False, machine: Callable[[], Any] | None = None,
) -> Launch:  # fmt: skip
    """Give a loaded module the memory for its next launch. Raises `NoRoom`. `machine`: makes a virtual machine, for compact logs.

    `background`: the program is to go on beside the launch. Then the caller gives the module its variables, in the launch's stream.
    """
    backend, number = memory.backend, launched.entry
    form = LogForm.of(recorded, number)
    expander = VirtualExpander(recorded, number, machine) if machine is not None and form.compact is not None else None
    launch = Launch(memory, launched.grid, launched.block, form, most_bytes, launched.cluster, room, expander, background=background)
    if not launch.silent:
        give_module(launch, handle)
        for _, address, data in () if background else launch.variables():
            backend.write(address, data)
    return launch


def give_module(launch: Launch, handle: Any) -> None:
    """Have a loaded module make a launch."""
    launch.symbol_addresses = [launch.backend.symbol(handle, name)[0] for name in (LAUNCH, PLACES)]
