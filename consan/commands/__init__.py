"""The commands of `consan`: names and help lines. A new command is a file and a row of COMMANDS.

A command's file is imported on use, so that `consan --help` imports none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from consan.dataclass import dataclass

if TYPE_CHECKING:
    from consan.commands.parts.base import Command


@dataclass(frozen=True)
class CommandEntry:
    """One row: the word on the command line, its line in `consan --help`, and the class in `consan.commands.NAME`."""

    name: str
    help: str
    kind: str

    def load(self) -> Command:
        """The command itself."""
        command: Command = getattr(import_module(f"consan.commands.{self.name}"), self.kind)()
        return command


COMMANDS: Final = (
    CommandEntry("run", "run a program with every kernel that it compiles or loads sanitized", "RunCommand"),
    CommandEntry("check", "sanitize one launch of one kernel from a .cu or .ptx file", "CheckCommand"),
    CommandEntry("prove", "prove that no launch of a kernel has a data race, or show one that has", "ProveCommand"),
    CommandEntry("audit", "run the kernels of many files with their own host code, and print a table of verdicts", "AuditCommand"),
    CommandEntry("advise", "list the barriers, waits and fences that nothing recorded in one launch needs", "AdviseCommand"),
    CommandEntry("report", "show a stored run again, in another format", "ReportCommand"),
    CommandEntry("stress", "run a program or a kernel under many schedules, and count findings and wrong results", "StressCommand"),
    CommandEntry("reduce", "reduce a failing schedule from stress to the fewest delays", "ReduceCommand"),
    CommandEntry("replay", "run a schedule from reduce (or a seed of stress) again, and confirm its failure", "ReplayCommand"),
    CommandEntry("explain", "what a kind of finding means, with an example and its fix", "ExplainCommand"),
    CommandEntry("doctor", "show versions, devices, libraries and adapters, and what is missing", "DoctorCommand"),
    CommandEntry("cache", "show where compiled kernels are kept and how large they are, or remove them", "CacheCommand"),
    CommandEntry("ptx", "show what is checked in a kernel's PTX, and what is not", "PtxCommand"),
)
