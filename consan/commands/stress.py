"""`consan stress`: runs one program or one launch of a kernel under many schedules, and counts findings and results.

The arguments are those of `consan run` or `consan check`. A FILE.cu or FILE.ptx is a kernel, anything else a program:

    consan stress --seeds 200 kernel.cu --grid 4 --block 128 --arg f32[512]=arange --arg f32[512]=zeros
    consan stress --seeds 50 script.py --its --own arguments
    consan stress --seeds 50 -- ./app its own arguments

The document is always stored, also after Ctrl-C. consan/triage/campaign.py does the counting.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan import late, options
from consan._errors import NotSupported, UsageError
from consan.commands.check import RequestedLaunch, add_launch_options
from consan.commands.parts.base import Parser
from consan.commands.parts.output import DOCUMENT, JSON, add_output, choose_format
from consan.commands.run import check_ranks, default_name
from consan.files import check_writable, write_file
from consan.launching.entries import check_parameters, choose_entry
from consan.launching.source import load_ptx
from consan.process.program import drop_idle_words, find_native, find_program
from consan.reports.model import EXIT_INCOMPLETE, EXIT_VIOLATIONS, INCOMPLETE, VIOLATIONS
from consan.reports.verdict.coverage import installed_version
from consan.session.planning.options import SessionOptions

if TYPE_CHECKING:
    from consan.triage.executors import Workers
    from consan.triage.outcome import Job
    from consan.triage.subject import KernelSubject, ProgramSubject

INTERRUPTED: Final = 130
_SUFFIXES: Final = (".cu", ".cuh", ".ptx")


class StressCommand:
    """Run under many schedules."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments. Words after a program belong to it; words after a kernel's file are more options."""
        parser.usage = "consan stress [options] [-m module | -c code | script.py | ./program | FILE.cu | FILE.ptx] [args or options...]"
        _add_options(parser)
        rest = argparse.REMAINDER
        parser.add_argument("-m", dest="module", nargs=rest, metavar="module", help="run a module, as python -m does")
        parser.add_argument("-c", dest="code", nargs=rest, metavar="code", help="run code given as text")
        parser.add_argument("program", nargs=rest, metavar="script.py|FILE.cu|FILE.ptx", help="what to run, and its arguments or options")

    def run(self, args: argparse.Namespace) -> int:
        """Run, store, show."""
        drop_idle_words(args)
        if args.module is None and args.code is None and not args.program:
            raise UsageError("expected what to run: FILE.cu, FILE.ptx, script.py, ./program, -m module or -c code")
        if _names_kernel(args):
            _read_rest(args)
        seeds = read_seeds(args.seeds)
        times = options.read_as("--confirm", args.confirm, options.read_count)
        shown, workers = choose_format(args.form, None, DOCUMENT, "consan stress"), workers_of(args)
        choose_format(None, args.file_out, (JSON,), "consan stress -o")
        check_writable(args.file_out)
        job = job_of(args)
        if job.subject.device != "cpu" and args.workers is None:
            workers.count = 1  # one GPU does the runs
        stored = args.file_out or default_name(f"stress-{Path(job.subject.label.split()[-1]).stem}")
        check_writable(stored)
        campaign = late.campaign.Campaign(job, seeds)
        with workers, late.show.Bar() as bar:
            campaign.run(workers, bar)
            late.campaign.refuse_empty(campaign)
            campaign.confirm(workers, bar, times)
            document = campaign.document(**_about(args, job, workers))
        write_file(stored, json.dumps(document, indent=1) + "\n")
        _show(document, shown, stored, args.notes)
        return status_of(document, allow_incomplete=args.allow_incomplete)


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("schedules")
    group.add_argument("--seeds", default="100", metavar="N|A..B", help="seeds 1 to N, or A to B [100]")
    group.add_argument("--confirm", default="3", metavar="N", help="run an example of each finding and wrong result N times again [3]")
    group.add_argument("--run-timeout", default="600", metavar="SECONDS", help="stop a run that takes longer [600]")
    add_worker_options(group)
    group = parser.add_argument_group("what is a right result")
    group.add_argument("--expect", action="append", default=[], metavar="N=FILE.npy", help="expected buffer of the N-th --arg")
    group.add_argument("--rtol", default="0", metavar="X", help="with --expect: relative tolerance of floats [0]")
    group.add_argument("--atol", default="0", metavar="X", help="with --expect: absolute tolerance of floats [0]")
    group.add_argument("--compare-stdout", action="store_true", help="the program's output is part of its result")
    add_launch_options(parser)
    options.add(parser, (*options.SESSION, *options.STATUS, *options.RUN, *options.RANKS), "checking")
    group = add_output(parser, (JSON,), "store the campaign in this file, not in the folder .consan")
    group.add_argument("--format", dest="form", metavar="|".join(DOCUMENT), help="format of what is printed")
    options.add_to(group, (options.NOTES, *options.TERMINAL))


def add_worker_options(group: Any) -> None:
    """Options for the workers."""
    group.add_argument("--workers", metavar="N", help="number of worker processes; 0: run in this process [one for each core]")
    group.add_argument("--executor", metavar="dask://HOST:PORT", help="run on an existing Dask cluster (install consan[dask])")


def workers_of(args: argparse.Namespace) -> Workers:
    """The workers that the options describe."""
    count = late.executors.cores() if args.workers is None else options.read_as("--workers", args.workers, options.read_count)
    return late.executors.Workers(count, args.executor)


def read_seeds(text: str) -> range:
    """N: 1 to N; A..B: A to B."""
    return options.read_as("--seeds", text, _seeds)


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    low, high = (options.read_integer(first), options.read_integer(last)) if dots else (1, options.read_positive(first))
    if not 0 <= low <= high:
        raise UsageError(f"expected N or A..B with 0 <= A <= B, got '{text}'")
    return range(low, high + 1)


def _tolerance(option: str, text: str, expect: Sequence[str]) -> float:
    """A tolerance of the results that `--expect` names: others are compared as they are, bit for bit."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{option}: expected a number that is not negative, got '{text}'")
    if value and not expect:
        raise UsageError(f"{option} needs --expect: without it runs are compared with each other, bit for bit")
    return value


# The job -------------------------------------------------------------------------------------------------------------------


def job_of(args: argparse.Namespace) -> Job:
    """The job that the words describe."""
    if args.keep_histories:
        raise UsageError("--keep-histories: stress keeps no histories; check a seed that it found with consan check --seed N")
    if args.explore:
        raise UsageError("--explore: stress has schedules of its own (--seeds)")
    limit = options.read_as("--run-timeout", args.run_timeout, options.read_seconds)
    if _names_kernel(args):
        kernel, ptx = kernel_of(args)
        return late.outcome.Job(kernel, ptx, tuple(args.rules), min(limit, args.timeout or limit))
    given = next((f"--{name}" for name in ("grid", "block", "entry", "ctas") if getattr(args, name) is not None), None)
    if given or args.args or args.expect:
        raise UsageError(f"{given or ('--arg' if args.args else '--expect')} is for a kernel's file, which ends in .cu or .ptx")
    return late.outcome.Job(program_of(args), "", tuple(args.rules), limit)


def _names_kernel(args: argparse.Namespace) -> bool:
    words = args.program
    return args.module is None and args.code is None and bool(words) and words[0].endswith(_SUFFIXES)


def _read_rest(args: argparse.Namespace) -> None:
    """Options after a kernel's file override those before it."""
    shared = [option for option in options.ALL if hasattr(args, option.name)]
    parser = Parser(prog="consan stress", allow_abbrev=False)
    parser.add_argument("file")
    _add_options(parser)
    before = {name: value for name, value in vars(args).items() if name not in {option.name for option in shared}}
    found = parser.parse_args(args.program, argparse.Namespace(**before))
    for option in shared:
        given = getattr(found, option.name)
        setattr(found, option.name, getattr(args, option.name) if given is None else option.value(given, {}))
    vars(args).update(vars(found))


def kernel_of(args: argparse.Namespace) -> tuple[KernelSubject, str]:
    """The launch and its PTX. An error in it is found here once, not by each worker."""
    if args.ranks > 1:
        raise UsageError("--ranks is for a program: a kernel's file has arguments of one rank; launch it with consan.launch(..., ranks=N)")
    if args.grid is None or args.block is None:
        raise UsageError("a kernel needs --grid and --block (see consan stress --help)")
    parsed = RequestedLaunch(args)
    expect = late.subject.absolute_expect(args.expect)
    files = late.subject.sources_of_kernel(args.file, parsed.specs, expect)
    backend = late.device.shared_device(args.device).backend
    named = args.entry
    ptx = load_ptx(args, backend.arch)
    entry = choose_entry(late.ptx.parse(ptx, args.file), args.entry, args.file)
    _refuse_filters(args, entry.name)
    check_parameters(entry, parsed.specs, args.file)
    source = late.subject.KernelSource(
        args.file, tuple(args.defines), tuple(args.include_dirs), args.std, args.arch, named if args.entry != named else "",
        late.subject.hash_ptx(ptx),
    )  # fmt: skip
    texts = late.subject.absolute_args(parsed.specs)
    launch = late.subject.LaunchText(entry.name, parsed.grid, parsed.block, parsed.cluster, parsed.smem, texts, args.seed)
    expected = late.subject.Expected(expect, _tolerance("--rtol", args.rtol, expect), _tolerance("--atol", args.atol, expect))
    checked = late.subject.HowChecked(
        policy=args.policy, ctas=parsed.ctas, shadow_memory=args.shadow_memory, assembly=args.assembly, engine=args.engine,
        trace_memory=args.trace_memory, exhaustive=args.exhaustive, sample=args.sample, global_memory=args.global_memory,
    )  # fmt: skip
    return late.subject.KernelSubject(source, launch, expected, checked, os.getcwd(), backend.choice, files), ptx


def _refuse_filters(args: argparse.Namespace, entry: str) -> None:
    """A campaign has one launch of one kernel: a filter that excludes it leaves nothing to check."""
    if args.kernel_name is not None and not args.kernel_name.matches(entry):
        raise UsageError(f"--kernel-name {args.kernel_name.text} leaves out {entry}, the only kernel that is launched")
    if args.launch_skip:
        raise UsageError(f"--launch-skip {args.launch_skip} leaves out the only launch of {entry}")


def program_of(args: argparse.Namespace) -> ProgramSubject:
    """The program, located once, so that a wrong name is one error."""
    native = find_native(args)
    check_ranks(args, native=native is not None)
    if native is None:
        find_program(args)
    else:
        if args.device == "cpu":
            raise NotSupported("stress --device cpu does not work for programs that are not Python; consan run --device cpu does")
        late.native_run.check_native(SessionOptions.in_arguments(args))
    device = "gpu" if native is not None else late.device.shared_device(args.device).backend.choice
    flag, words = next((flag, words) for flag, words in (("-m", args.module), ("-c", args.code), ("", args.program)) if words)
    given = [*_given(args), "--device", device]
    sources = late.subject.sources_of_program(flag, tuple(words))
    return late.subject.ProgramSubject(flag, tuple(words), os.getcwd(), tuple(given), args.compare_stdout, device, sources)


def _given(args: argparse.Namespace) -> list[str]:
    """The run's options as words, without those that each run sets itself."""
    words: list[str] = []
    for option in (*options.SESSION, *options.RUN, *options.RANKS):
        value = getattr(args, option.name)
        if option.name not in ("device", "seed") and value != option.default:
            words += [option.flags[-1], *([] if option.switch else [getattr(value, "text", str(value))])]
    return words


# Output ----------------------------------------------------------------------------------------------------------------------


def _about(args: argparse.Namespace, job: Job, workers: Workers) -> dict[str, Any]:
    where = args.executor or ("this process" if workers.count == 0 else f"{workers.count} process{'es' * (workers.count > 1)}")
    return {"name": job.subject.label, "consan": installed_version(), "command": ["consan", *args.argv], "executor": where}


def _show(document: dict[str, Any], shown: str, stored: str, notes: bool) -> None:
    if shown == JSON:
        print(json.dumps(document, indent=1))
    else:
        late.show.show_stress(document, sys.stdout, notes=notes)
    following = f"; next: consan reduce {stored}" if document["verdict"] == VIOLATIONS else ""
    print(f"stored: {stored}{following}", file=sys.stderr if shown == JSON else sys.stdout)


def status_of(document: dict[str, Any], *, allow_incomplete: bool) -> int:
    """The status of the campaign; 130 after Ctrl-C."""
    if document["partial"]:
        return INTERRUPTED
    if document["verdict"] == VIOLATIONS:
        return EXIT_VIOLATIONS
    return EXIT_INCOMPLETE if not allow_incomplete and document["verdict"] == INCOMPLETE else 0
