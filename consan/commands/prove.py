"""`consan prove FILE`: whether any launch of a kernel has a data race, in shared or global memory, without running it.

`consan prove PROGRAM.py` runs a program as `consan run --prove` does, and is 0 only if each kernel that it launches is proven.

A counterexample is run as `consan check` runs it, on the virtual machine: if that shows no race, the answer is `unknown`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from consan import late, options
from consan._errors import ExitCode, UsageError
from consan.commands.check import EXPLORES, CheckCommand, RequestedLaunch
from consan.commands.parts.base import Parser
from consan.commands.parts.deliver import deliver, shown_by
from consan.commands.parts.output import DOCUMENT, JSON, TEXT, add_output, chosen_output, put
from consan.commands.parts.proof_subject import ProofSubject
from consan.commands.parts.proofs import ProofReport, as_json, as_text
from consan.commands.run import RunCommand
from consan.dataclass import dataclass
from consan.launching.source import add_compile_options, load_module
from consan.prove.counterexample import RacyLaunch, launches
from consan.prove.environment import shared_sizes
from consan.prove.numbers import Base
from consan.prove.proof import COUNTEREXAMPLE, PROVEN, UNKNOWN, KernelProof
from consan.prove.solver import require
from consan.reports.formats.visible import visible

if TYPE_CHECKING:
    from consan.reports.model import Report

_SECONDS: Final = "60"
_MOST_RUNS: Final = 3
_RACES: Final = frozenset({"data-race", "global-race", "scope", "missing-wait", "missing-proxy-fence"})
_STATUS: Final = {PROVEN: ExitCode.OK, COUNTEREXAMPLE: ExitCode.VIOLATIONS, UNKNOWN: ExitCode.INCOMPLETE}


class ProveCommand:
    """Prove one kernel free of data races, or show a launch with one."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx); a program (.py) runs, and its kernels are proven")
        parser.add_argument("words", nargs="*", metavar="ARGS", help="words of the program")
        group = parser.add_argument_group("launches")
        group.add_argument("--block", metavar="X[,Y[,Z]]", help="threads per CTA, in all launches [.reqntid of the kernel]")
        group.add_argument("--entry", metavar="NAME", help="the kernel, if the file has several; 'rev<float, 128>' instantiates a template")
        words = "what holds of each launch, such as 'n <= 1024', 'n %% 4 == 0', 'gridDim.y == 1'; may be repeated"
        group.add_argument("--assume", dest="assumptions", action="append", default=[], metavar="CONDITION", help=words)
        group.add_argument("--within", default=_SECONDS, metavar="SECONDS", help=f"give up after so long [{_SECONDS}]")
        add_compile_options(parser)
        options.add_to(add_output(parser, DOCUMENT), (*options.PICTURE, *options.TERMINAL))

    def run(self, args: argparse.Namespace) -> int:
        """Prove, run a counterexample, print."""
        require()
        if args.file.endswith(".py"):
            return _of_program(args)
        if args.words:
            raise UsageError(f"{args.file}: words are for programs, got {' '.join(args.words)}")
        as_document = chosen_output(args) == JSON
        seconds = options.read_as("--within", args.within, options.read_seconds)
        module = load_module(args)
        subject = ProofSubject.of(args, module)
        began = time.monotonic()
        proof = subject.prove(seconds)
        run = _run(args, subject, proof) if proof.conflicts else None
        answer = COUNTEREXAMPLE if run is not None and run.shown else proof.answer
        tried = ("", ()) if run is None else (run.command, run.launch.lines)
        report = subject.report(answer, proof, time.monotonic() - began, *tried)
        if run is not None and run.shown and not as_document:
            deliver(run.report, TEXT, None, shown_by(args))
        written = put(args, as_json(report) if as_document else _text(report), f"answer: {answer}")
        return int(_STATUS[answer]) or written


def _of_program(args: argparse.Namespace) -> int:
    """Run a program, and prove its kernels for the shapes of blocks that it launches."""
    if args.block or args.entry or args.assumptions:
        raise UsageError("--block, --entry and --assume are for a file of kernels: a program says how it launches its own")
    parser = Parser(prog="consan run", add_help=False)
    RunCommand().prepare(parser)
    output = [word for option, value in (("-o", args.file_out), ("--format", args.form)) if value for word in (option, value)]
    given = parser.parse_args([*output, "--prove", args.within, args.file, *args.words])
    options.fill(given, os.environ, late.config.load().texts)
    for name in ("argv", "whole_process", "rules", *(each.name for each in (*options.PICTURE, *options.TERMINAL))):
        setattr(given, name, getattr(args, name))
    given.proves_all = True
    return RunCommand().run(given)


def _text(report: ProofReport) -> str:
    return "".join(f"{visible(line)}\n" for line in as_text(report))


@dataclass(frozen=True)
class Run:
    """A launch with a counterexample: the command, and its report. `shown`: it has a race."""

    launch: RacyLaunch
    command: str
    report: Report

    @property
    def shown(self) -> bool:
        """Whether the report has the race."""
        return any(each.kind in _RACES and each.severity == "error" for each in self.report.active)


def _run(args: argparse.Namespace, subject: ProofSubject, proof: KernelProof) -> Run | None:
    """The first launch that shows a race, else the first one with other data and in other schedules; None: there was none to try."""
    tried = list[RacyLaunch]()
    for launch in launches(proof.conflicts, subject.function, _MOST_RUNS):
        tried.append(launch)
        if (found := _of_launch(args, subject, launch, 0.0)).shown:
            return found
    bases = set() if proof.environment is None else proof.environment.symbols.shared.zeros
    return _of_launch(args, subject, _counted(tried[0], bases), EXPLORES) if tried else None


def _counted(launch: RacyLaunch, zeros: Collection[Base]) -> RacyLaunch:
    """The same launch with arrays of unequal elements: threads that store what they have loaded store other values. `zeros`: but these."""
    pairs = enumerate(launch.arguments)
    return replace(
        launch, arguments=tuple(each if ("param", f"{place}+0") in zeros else each.replace("=zeros", "=arange") for place, each in pairs)
    )


def _of_launch(args: argparse.Namespace, subject: ProofSubject, launch: RacyLaunch, explore: float) -> Run:
    words = _command(args, subject, launch)
    return Run(launch, shlex.join(words), _checked(words, explore))


def _command(args: argparse.Namespace, subject: ProofSubject, launch: RacyLaunch) -> list[str]:
    """The command line of `consan check` for a launch."""
    words = ["consan", "check", args.file, "--grid", ",".join(map(str, launch.grid)), "--block", ",".join(map(str, subject.block))]
    entry = getattr(args, "instance", None) or args.entry  # the check compiles the instance of a template again
    words += [] if entry is None else ["--entry", entry]
    words += [word for each in launch.arguments for word in ("--arg", each)]
    words += [word for each in args.defines for word in ("--define", each)]
    words += [word for each in args.include_dirs for word in ("-I", each)]
    for option in ("std", "arch"):
        words += [f"--{option}", getattr(args, option)] if getattr(args, option) else []
    dynamic = _dynamic(subject)
    return [*words, *(["--smem", str(dynamic)] if dynamic else []), "--device", "cpu"]


_DYNAMIC: Final = 48 << 10  # bytes: what each device has


def _dynamic(subject: ProofSubject) -> int:
    """The dynamic shared memory of a run: what is left of the least that a device has, where the kernel uses some."""
    sizes = shared_sizes(subject.function, subject.module).values()
    return max(0, _DYNAMIC - sum(sizes)) if 0 in sizes else 0


def _checked(words: list[str], explore: float) -> Report:
    """The report of `consan check` for a command line. `explore`: the seconds of other schedules."""
    parser = Parser(prog="consan check", add_help=False)
    CheckCommand().prepare(parser)
    given = parser.parse_args(words[2:])
    given.argv, given.command, given.rules = words[1:], "check", ()
    options.fill(given, {})
    given.quiet, given.explore = True, explore
    report = RequestedLaunch(given).run(given)
    return replace(report, command=tuple(words))
