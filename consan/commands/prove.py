"""`consan prove FILE`: whether any launch of a kernel has a data race, in shared or global memory, without running it.

A counterexample is run as `consan check` runs it, on the virtual machine: if that shows no race, the answer is `unknown`.
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from consan import options
from consan._errors import ExitCode, UsageError
from consan.commands.check import CheckCommand, RequestedLaunch
from consan.commands.parts.base import Parser
from consan.commands.parts.deliver import deliver
from consan.commands.parts.output import DOCUMENT, JSON, TEXT, add_output, chosen_output, put
from consan.commands.parts.proofs import ProofPlace, ProofReport, as_json, as_text
from consan.files import read_file
from consan.instrument.ptx.extents import three_extents
from consan.launching.arguments import check_dimensions, parse_dim3
from consan.launching.declarations import declarations
from consan.launching.entries import choose_entry
from consan.launching.parameter_kind import POINTER
from consan.launching.signature import kinds_of
from consan.launching.source import add_compile_options, is_cuda, load_module
from consan.prove.assumptions import Assumption, names_of
from consan.prove.counterexample import RacyLaunch, launches
from consan.prove.environment import shared_sizes
from consan.prove.proof import COUNTEREXAMPLE, PROVEN, UNKNOWN, KernelProof, ProofReason, prove
from consan.prove.solver import require
from consan.reports.formats.visible import visible
from consan.reports.source.names import function_name

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module
    from consan.reports.model import Report

_ONE_CTA: Final = (1, 1, 1)
_SECONDS: Final = "60"
_MOST_RUNS: Final = 3
_RACES: Final = frozenset({"data-race", "global-race", "missing-wait", "missing-proxy-fence"})
_STATUS: Final = {PROVEN: ExitCode.OK, COUNTEREXAMPLE: ExitCode.VIOLATIONS, UNKNOWN: ExitCode.INCOMPLETE}


class ProveCommand:
    """Prove one kernel free of data races, or show a launch with one."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx)")
        group = parser.add_argument_group("launches")
        group.add_argument("--block", metavar="X[,Y[,Z]]", help="threads per CTA, in all launches [.reqntid of the kernel]")
        group.add_argument("--entry", metavar="NAME", help="the kernel, if the file has several; 'rev<float, 128>' instantiates a template")
        words = "what holds of each launch, such as 'n <= 1024', 'n %% 4 == 0', 'gridDim.y == 1'; may be repeated"
        group.add_argument("--assume", dest="assumptions", action="append", default=[], metavar="CONDITION", help=words)
        group.add_argument("--within", default=_SECONDS, metavar="SECONDS", help=f"give up after so long [{_SECONDS}]")
        add_compile_options(parser)
        options.add_to(add_output(parser, DOCUMENT), options.TERMINAL)

    def run(self, args: argparse.Namespace) -> int:
        """Prove, run a counterexample, print."""
        require()
        as_document = chosen_output(args) == JSON
        seconds = options.read_as("--within", args.within, options.read_seconds)
        module = load_module(args)
        subject = Subject.of(args, module)
        began = time.monotonic()
        proof = prove(subject.function, module, subject.block, subject.pointers, [each.formula for each in subject.assumptions], seconds)
        run = _run(args, subject, proof) if proof.conflicts else None
        answer = COUNTEREXAMPLE if run is not None and run.shown else proof.answer
        report = subject.report(answer, proof, run, time.monotonic() - began)
        if run is not None and run.shown and not as_document:
            deliver(run.report, TEXT, None)
        written = put(args, as_json(report) if as_document else _text(report), f"answer: {answer}")
        return int(_STATUS[answer]) or written


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


@dataclass(frozen=True)
class Subject:
    """The kernel in question, and what is said of its launches."""

    file: str
    module: Module
    function: Function
    block: tuple[int, int, int]
    pointers: tuple[int, ...]
    assumptions: tuple[Assumption, ...]

    @classmethod
    def of(cls, args: argparse.Namespace, module: Module) -> Subject:
        """The kernel that the command line names."""
        function = choose_entry(module, args.entry, args.file)
        source = read_file(args.file) if is_cuda(args.file) else None
        kinds = kinds_of(function, None if source is None else lambda: source)
        pointers = tuple(place for place, kind in enumerate(kinds) if kind.kind == POINTER)
        names = names_of(function.params, _declared(function, source), pointers)
        assumptions = tuple(Assumption(text, names) for text in args.assumptions)
        return cls(args.file, module, function, _block(args, function), pointers, assumptions)

    def report(self, answer: str, proof: KernelProof, run: Run | None, seconds: float) -> ProofReport:
        """The answer in words, with places in the source."""
        reasons = [] if answer == COUNTEREXAMPLE else proof.reasons
        if run is not None and not run.shown:
            why = f"a launch in which they should showed no race: {run.command}"
            reasons = [*reasons, ProofReason(why, run.launch.lines)]
        return ProofReport(
            kernel=function_name(self.function.name),
            block=self.block,
            answer=answer,
            flat=() if proof.environment is None else proof.environment.flat,
            overflows=tuple(map(self._place, proof.overflows)),
            assumptions=tuple(each.text for each in self.assumptions),
            reasons=tuple((each.why, tuple(map(self._place, each.lines))) for each in reasons),
            pairs=proof.pairs,
            seconds=seconds,
            command=run.command if run is not None else "",
            places=tuple(map(self._place, run.launch.lines)) if run is not None else (),
        )

    def _place(self, line: int) -> ProofPlace:
        """A line of the PTX, and of the source."""
        at = next((each.loc for each in self.function.instructions() if each.line == line), None)
        return ProofPlace(self.module.path(at.file), at.line, line) if at is not None else ProofPlace(self.file, 0, line)


def _declared(function: Function, source: str | None) -> list[str]:
    """The names of the parameters in the source, if it has one kernel of the name."""
    name = function_name(function.name).rpartition("::")[2]
    found = [each for each in declarations(source or "") if each.name == name]
    words = [re.findall(r"[A-Za-z_]\w*", text) for text in (found[0].parameters if len(found) == 1 else ())]
    return [each[-1] for each in words if each]


def _block(args: argparse.Namespace, function: Function) -> tuple[int, int, int]:
    """The shape of the blocks."""
    given = function.directives.get("reqntid")
    if args.block is not None:
        block = parse_dim3("--block", args.block)
        check_dimensions(_ONE_CTA, block, _ONE_CTA)
        return block
    if not isinstance(given, tuple):
        raise UsageError(f"{args.file}: {function.name} does not say how many threads a block has; use --block")
    return three_extents(given)


def _run(args: argparse.Namespace, subject: Subject, proof: KernelProof) -> Run | None:
    """The first launch that shows a race, else the last one that was tried; None: there was none to try."""
    tried: Run | None = None
    for launch in launches(proof.conflicts, subject.function, _MOST_RUNS):
        words = _command(args, subject, launch)
        tried = Run(launch, shlex.join(words), _checked(words))
        if tried.shown:
            return tried
    return tried


def _command(args: argparse.Namespace, subject: Subject, launch: RacyLaunch) -> list[str]:
    """The command line of `consan check` for a launch."""
    words = ["consan", "check", args.file, "--grid", ",".join(map(str, launch.grid)), "--block", ",".join(map(str, subject.block))]
    words += [] if args.entry is None else ["--entry", args.entry]
    words += [word for each in launch.arguments for word in ("--arg", each)]
    words += [word for each in args.defines for word in ("--define", each)]
    words += [word for each in args.include_dirs for word in ("-I", each)]
    for option in ("std", "arch"):
        words += [f"--{option}", getattr(args, option)] if getattr(args, option) else []
    dynamic = _dynamic(subject)
    return [*words, *(["--smem", str(dynamic)] if dynamic else []), "--device", "cpu"]


_DYNAMIC: Final = 48 << 10  # bytes: what each device has


def _dynamic(subject: Subject) -> int:
    """The dynamic shared memory of a run: what is left of the least that a device has, where the kernel uses some."""
    sizes = shared_sizes(subject.function, subject.module).values()
    return max(0, _DYNAMIC - sum(sizes)) if 0 in sizes else 0


def _checked(words: list[str]) -> Report:
    """The report of `consan check` for a command line."""
    parser = Parser(prog="consan check", add_help=False)
    CheckCommand().prepare(parser)
    given = parser.parse_args(words[2:])
    given.argv, given.command, given.rules = words[1:], "check", ()
    options.fill(given, {})
    given.quiet, given.explore = True, 0.0
    report = RequestedLaunch(given).run(given)
    return replace(report, command=tuple(words))
