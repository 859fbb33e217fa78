"""The commands of `consan`, one file each; a new one is a file and a row of COMMANDS.

Importing this package imports no compiler, no backend and no framework: each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Final

from consan.commands.base import Command
from consan.commands.check import CheckCommand
from consan.commands.doctor import DoctorCommand
from consan.commands.explain import ExplainCommand
from consan.commands.ptx import PtxCommand
from consan.commands.reduce import ReduceCommand
from consan.commands.replay import ReplayCommand
from consan.commands.report import ReportCommand
from consan.commands.run import RunCommand
from consan.commands.stress import StressCommand

COMMANDS: Final[tuple[Command, ...]] = (
    RunCommand(),
    CheckCommand(),
    ReportCommand(),
    StressCommand(),
    ReduceCommand(),
    ReplayCommand(),
    ExplainCommand(),
    DoctorCommand(),
    PtxCommand(),
)

__all__ = ["COMMANDS", "Command"]
