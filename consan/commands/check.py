"""`consan check FILE`: one launch of one kernel, with arguments given as text.

Not handled: checking results (consan checks order, not values), more than one launch, and kernels that need
another kernel to run first.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from consan import late, options
from consan._errors import ConsanError, ExitCode, UsageError
from consan.commands.parts.again import checked_again
from consan.commands.parts.both_orders import with_outcomes
from consan.commands.parts.deliver import deliver, judged_launch, shown_by
from consan.commands.parts.on_machine import with_machine
from consan.commands.parts.output import choose_format
from consan.commands.parts.patching import with_patch, with_reruns
from consan.commands.parts.signatures import describe, templates
from consan.commands.parts.unoptimised import with_unoptimised
from consan.dataclass import dataclass
from consan.files import check_writable, read_file
from consan.launching.arguments import check_dimensions, parse_args, parse_dim3
from consan.launching.entries import check_parameters, choose_entry, entries_of
from consan.launching.room import GiB, Inputs, bytes_of, check_room, described, placed
from consan.launching.source import DEFAULT_ARCH, add_compile_options, is_cuda, load_module, read_module
from consan.progress import SILENT, for_terminal, remark
from consan.reports.counts import plural
from consan.reports.model import Report
from consan.reports.verdict.conclusion import exit_status
from consan.session.planning.options import SessionOptions
from consan.session.session_options import open_session
from consan.suppressions import Place, finish, warn_of_unused

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module
    from consan.session.asking.reruns import Ran
    from consan.session.asking.timing import Timer
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

    More = tuple["RequestedLaunch", int]

_LARGEST_SHARED = 227 << 10
EXPLORES: Final = 2.0  # seconds
_CLUSTER, _SMEM = "1", "0"  # defaults of --cluster and --smem


def _device_text(name: str, text: str, wanted: str | None) -> tuple[str, str]:
    """A file's text without its host code, and its folder of headers."""
    return late.audit_program.device_text(name, text, wanted)


class CheckCommand:
    """Run one kernel once, sanitized."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx)")
        parser.epilog = "Without --grid and --block: what the kernels of FILE take, and a command to start from; nothing is checked then."
        add_launch_options(parser)
        parser.set_defaults(without_host=_device_text)
        options.add(parser, (*options.SESSION, options.PROVE, options.UNOPTIMIZED, *options.STATUS), "checking")
        options.add(parser, (*options.OUTPUT, *options.PICTURE, *options.TERMINAL), "output")
        parser.add_argument("--patch", metavar="FILE", help="write the verified fixes as a unified diff, of the .cu file or of the PTX")

    def run(self, args: argparse.Namespace) -> int:
        """Parse everything first: an error in the last argument should not cost a compilation."""
        if not launch_given(args):
            show_kernels(args)
        chosen = choose_format(args.format, args.output)
        check_writable(args.output)
        check_writable(args.patch)
        requested = RequestedLaunch(args)
        args.explore = EXPLORES if args.explore is None else args.explore
        sessions: list[Session] = []
        report = requested.run(args, sessions.append)
        if any(session.record_lost for session in sessions):
            report = checked_again(args.argv, report)
        report = with_outcomes(requested, args, with_reruns(requested, args, report))
        report = with_machine(requested, args, with_unoptimised(requested, args, report))
        warn_of_unused(report, requested.places, args.rules)
        if args.prove:
            report = late.all_launches.with_all_launches(requested, args, report)
        if args.patch is not None:
            report = with_patch(requested, args, report)
        status = exit_status(report, strict=args.strict, allow_incomplete=args.allow_incomplete)
        done = replace(report, command=("consan", *args.argv), status=status)
        undelivered = deliver(done, chosen, args.output, shown_by(args))
        return status or undelivered


def launch_given(args: argparse.Namespace) -> bool:
    """Whether any option describes a launch."""
    return bool(args.grid or args.block or args.args or args.ctas or (args.cluster, args.smem) != (_CLUSTER, _SMEM))


def show_kernels(args: argparse.Namespace) -> NoReturn:
    """Print the kernels' parameters and a command to start from. The status is not 0: nothing was checked."""
    module = load_module(args)
    source = read_file(args.file) if is_cuda(args.file) else ""
    wanted = args.entry is not None or not entries_of(module)
    entries = [choose_entry(module, args.entry, args.file)] if wanted else entries_of(module)
    for line in (*describe(module, entries, source, ("consan", *args.argv)), *(() if wanted else templates(source))):
        print(line)
    sys.stdout.flush()
    raise UsageError(f"{args.file}: nothing was checked; say how to launch a kernel, with --grid and --block")


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """Options that describe one launch of one kernel, and how the kernel is compiled."""
    add_shape_options(parser)
    add_compile_options(parser)


def add_shape_options(parser: argparse.ArgumentParser) -> None:
    """Options that describe one launch of one kernel."""
    group = parser.add_argument_group("launch")
    group.add_argument("--grid", metavar="X[,Y[,Z]]", help="CTAs")
    group.add_argument("--block", metavar="X[,Y[,Z]]", help="threads per CTA")
    group.add_argument("--cluster", default=_CLUSTER, metavar="X[,Y[,Z]]", help="CTAs per cluster")
    group.add_argument("--smem", default=_SMEM, metavar="SIZE", help="dynamic shared memory: bytes, or 64K")
    group.add_argument("--entry", metavar="NAME", help="the kernel, if the file has several; 'rev<float, 128>' instantiates a template")
    group.add_argument(
        "--arg", dest="args", action="append", default=[], metavar="SPEC", help="f32[65536]=random, i32=4096, tma:..., struct:..."
    )
    group.add_argument("--ctas", metavar="N", help="check only N clusters of the grid")


class RequestedLaunch:
    """The requested launch, checked as far as possible without the kernel."""

    def __init__(self, args: argparse.Namespace) -> None:
        missing = ", ".join(f"--{name}" for name in ("grid", "block") if getattr(args, name) is None)
        if missing:
            raise UsageError(f"the following arguments are required: {missing} (see consan {args.command} --help)")
        self.grid = parse_dim3("--grid", args.grid)
        self.block = parse_dim3("--block", args.block)
        self.cluster = parse_dim3("--cluster", args.cluster)
        check_dimensions(self.grid, self.block, self.cluster)
        self.smem = options.read_as("--smem", args.smem, options.read_size)
        if self.smem > _LARGEST_SHARED:
            raise UsageError(f"--smem: {self.smem:,} bytes, expected at most {_LARGEST_SHARED:,}")
        self.ctas = None if args.ctas is None else options.read_as("--ctas", args.ctas, options.read_positive)
        self.specs = parse_args(args.args)
        self.module: Module | None = None  # what was launched
        self._kernel: tuple[str, list[bytes]] = ("", [])  # the symbol of its kernel, and the parameters
        self.changed: _Changed | None = None  # what `again` has launched last
        self.places: Iterable[Place] = ()  # source lines that were watched
        self.ends = math.inf  # when --timeout is over, for what follows the launch too
        self.searched = 0.0  # seconds that the search for fixes has taken
        self.arch = DEFAULT_ARCH
        self.compiling = 0.0  # seconds of processor time that the compiler has taken
        self.executed = 0  # instructions of all threads, on the virtual machine

    @property
    def entry(self) -> str:
        """The symbol of the kernel that was launched."""
        return self._kernel[0]

    @property
    def parameters(self) -> list[bytes]:
        """The bytes of the parameters of that launch."""
        return self._kernel[1]

    def run(
        self, args: argparse.Namespace, opened: Callable[[Session], None] = lambda session: None, more: Callable[[], Iterable[More]] = tuple
    ) -> Report:
        """Prepare, launch, report. `opened`: is given the session before the launch. `more`: launches after it, with a seed each."""
        session = self._open(args)
        opened(session)
        check_room(self.specs, session.backend)
        if bytes_of(self.specs) >= GiB:
            remark(lambda: described(self.specs))
        session.show(progress := for_terminal(delay=0.0))
        with (SILENT if args.verbose else progress).working(f"compiling {args.file}"):  # the compiler's warnings use the progress line
            self.arch = session.backend.arch or DEFAULT_ARCH
            began = time.process_time()
            self.module = load_module(args, self.arch)
            self.compiling = time.process_time() - began
        kernel = self._prepare(session, args, self.module)
        if args.timeout is not None:
            self.ends = time.monotonic() + args.timeout
        inputs = placed(self.specs, session.backend, late.exploration.data_seed(args.seed))
        self._kernel = kernel.entry.name, inputs.values
        status = self._launch(session, kernel, inputs)
        for other, seed in more():
            session.seed = seed
            check_parameters(kernel.entry, other.specs, args.file)
            status = status or other._launch(session, kernel, placed(other.specs, session.backend, late.exploration.data_seed(seed)))
        session.seed, self.searched, self.executed = args.seed, session.recording.fixes.seconds, session.executed
        report, self.places = judged_launch(session, args.rules, status)
        return report

    def again(self, args: argparse.Namespace, ptx: str, seed: int, explore: float = 0.0) -> Ran:
        """The same launch of a changed kernel under a schedule, in a session of its own, which all schedules of it share.

        `explore`: seconds for other schedules.
        """
        made_from = ptx, args.timeout, explore
        if self.changed is None or self.changed.made_from != made_from:
            session = self._open(argparse.Namespace(**(vars(args) | {"keep_histories": False, "explore": explore})))
            session.recording.fixes.off = True
            module = read_module(ptx, args.file, wild=False)  # the module that was launched, and some instructions more
            kernel = self._prepare(session, args, module)
            inputs = placed(self.specs, session.backend, late.exploration.data_seed(args.seed))
            self.changed = _Changed(made_from, session, kernel, inputs)
        return self._ran(self.changed, args, seed)

    def _ran(self, changed: _Changed, args: argparse.Namespace, seed: int) -> Ran:
        """A run of a changed kernel, from the same memory."""
        session, kernel, placement = changed.session, changed.kernel, changed.inputs.placement
        session.seed, executed = seed, session.executed
        placement.refresh()
        self._launch(session, kernel, changed.inputs)
        results = hashlib.blake2b(b"".join(placement.contents())).digest()
        report = session.take()
        assert report is not None, "a kernel was launched"
        in_all = late.schedules.no_schedule_changes(report, kernel.prepared, kernel.entry.name, self.block)
        return late.reruns.Ran(finish(report, args.rules), results, session.executed - executed, in_all)

    def timer(self, args: argparse.Namespace) -> Timer:
        """Times forms of the kernel on the GPU, without any checks."""
        backend = late.timing.gpu()
        inputs = placed(self.specs, backend, late.exploration.data_seed(args.seed))

        def launch(form: Any) -> None:
            backend.launch(form, self.entry, self.grid, self.block, inputs.values, shared=self.smem, cluster=self.cluster)

        def results(run: Callable[[], None]) -> list[bytes]:
            inputs.placement.refresh()
            run()
            backend.synchronize()
            return inputs.placement.contents()

        return late.timing.Timer(backend, launch, results)

    def _open(self, args: argparse.Namespace) -> Session:
        watched = 0 if self.ctas is None else self.ctas * math.prod(self.cluster)
        alone = argparse.Namespace(**(vars(args) | {"prove": 0.0}))  # the proof comes behind the launch
        session = open_session(SessionOptions.in_arguments(alone), cta_limit=watched)
        if 0 < watched < math.prod(self.grid):
            session.note(f"--ctas {self.ctas}: {watched:,} of {plural(math.prod(self.grid), 'CTA')} were checked")
        return session

    def _prepare(self, session: Session, args: argparse.Namespace, module: Module) -> _ReadyKernel:
        entry = choose_entry(module, args.entry, args.file)
        check_parameters(entry, self.specs, args.file)
        kernel = _ReadyKernel(session.prepare(module, name=args.file, cluster=math.prod(self.cluster)), entry)
        if kernel.prepared.recorded is None:
            with contextlib.suppress(ConsanError):  # if it cannot be launched, `launch` reports why
                room = session.room(kernel.prepared, entry.name, self.block, self.smem, self.cluster)
                remark(lambda: str(room))
        return kernel

    def _launch(self, session: Session, kernel: _ReadyKernel, inputs: Inputs) -> int:
        """Launch; returns the status."""
        prepared, entry, placement = kernel.prepared, kernel.entry.name, inputs.placement
        session.address_name = late.layouts.name_addresses(prepared, entry, placement.buffers)
        try:
            session.launch(
                prepared, entry, self.grid, self.block, inputs.values,
                shared=self.smem, cluster=self.cluster, cooperative=prepared.synchronises_grid, restore=placement.refresh,
            )  # fmt: skip
        except KeyboardInterrupt:  # keep what was found so far
            return int(ExitCode.INTERRUPTED)
        return 0


@dataclass(frozen=True)
class _ReadyKernel:
    """A kernel of a module that a session has prepared."""

    prepared: Prepared
    entry: Function


@dataclass(frozen=True)
class _Changed:
    """A changed kernel that is ready for launches, and its session. `made_from`: its text, the seconds of a launch and of its schedules."""

    made_from: tuple[str, float | None, float]
    session: Session
    kernel: _ReadyKernel
    inputs: Inputs
