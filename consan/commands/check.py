"""`consan check FILE`: one launch of one kernel, with arguments given as text.

Not handled: checking results (consan checks order, not values), more than one launch, and kernels that need
another kernel to run first.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from consan import options
from consan._errors import ConsanError, ExitCode, UsageError, did_you_mean
from consan.arguments import ArgSpec, check_dimensions, parse_args, parse_dim3
from consan.commands.base import check_writable, read_file, remark
from consan.commands.deliver import choose_format, deliver, judged
from consan.commands.signatures import declarations, describe, templates
from consan.commands.source import DEFAULT_ARCH, add_compile_options, is_cuda, load_ptx, read_module
from consan.layouts import name_addresses
from consan.progress import SILENT, for_terminal
from consan.reports.model import Report, exit_status
from consan.signature import check_arguments
from consan.tensormap_argument import TensorMap

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module

_LARGEST_SHARED = 227 << 10
_CLUSTER, _SMEM = "1", "0"  # defaults of --cluster and --smem


class CheckCommand:
    """Run one kernel once, sanitized."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="CUDA C++ (.cu) or PTX (.ptx)")
        parser.epilog = "Without --grid and --block: what the kernels of FILE take, and a command to start from; nothing is checked then."
        add_launch_options(parser)
        options.add(parser, options.SESSION, "checking")
        options.add(parser, (*options.OUTPUT, *options.PICTURE, *options.TERMINAL), "output")

    def run(self, args: argparse.Namespace) -> int:
        """Parse everything first: an error in the last argument should not cost a compilation."""
        if not launch_given(args):
            show_kernels(args)
        chosen = choose_format(args.format, args.output)
        check_writable(args.output)
        report = Launch(args).run(args)
        status = exit_status(report, strict=args.strict)
        told = replace(report, command=("consan", *args.argv), status=status)
        undelivered = deliver(told, chosen, args.output, notes=args.notes, timeline=args.timeline)
        return status or undelivered


def launch_given(args: argparse.Namespace) -> bool:
    """Whether any option describes a launch."""
    return bool(args.grid or args.block or args.args or args.ctas or (args.cluster, args.smem) != (_CLUSTER, _SMEM))


def show_kernels(args: argparse.Namespace) -> NoReturn:
    """Print the kernels' parameters and a command to start from. The status is not 0: nothing was checked."""
    ptx = load_ptx(args)
    module = read_module(ptx, args.file)
    source = read_file(args.file) if is_cuda(args.file) else ""
    wanted = args.entry is not None or not entries_of(module)
    entries = [choose_entry(module, args.entry, args.file)] if wanted else entries_of(module)
    for line in (*describe(module, entries, source, ("consan", *args.argv)), *(() if wanted else templates(source))):
        print(line)
    sys.stdout.flush()
    raise UsageError(f"{args.file}: nothing was checked; say how to launch a kernel, with --grid and --block")


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """Options that describe one launch of one kernel."""
    group = parser.add_argument_group("launch")
    group.add_argument("--grid", metavar="X[,Y[,Z]]", help="CTAs")
    group.add_argument("--block", metavar="X[,Y[,Z]]", help="threads per CTA")
    group.add_argument("--cluster", default=_CLUSTER, metavar="X[,Y[,Z]]", help="CTAs per cluster")
    group.add_argument("--smem", default=_SMEM, metavar="SIZE", help="dynamic shared memory: bytes, or 64K")
    group.add_argument("--entry", metavar="NAME", help="the kernel, if the file has several; 'rev<float, 128>' instantiates a template")
    group.add_argument(
        "--arg", dest="args", action="append", default=[], metavar="SPEC", help="f32[65536]=random, i32=4096, bytes=HEX, tma:..."
    )
    group.add_argument("--ctas", metavar="N", help="check only N clusters of the grid")
    add_compile_options(parser)


class Launch:
    """The requested launch, checked as far as possible without the kernel."""

    def __init__(self, args: argparse.Namespace) -> None:
        missing = ", ".join(f"--{name}" for name in ("grid", "block") if getattr(args, name) is None)
        if missing:
            raise UsageError(f"the following arguments are required: {missing} (see consan {args.command} --help)")
        self.grid = parse_dim3("--grid", args.grid)
        self.block = parse_dim3("--block", args.block)
        self.cluster = parse_dim3("--cluster", args.cluster)
        check_dimensions(self.grid, self.block, self.cluster)
        self.smem = _number("--smem", args.smem, options.read_size)
        if self.smem > _LARGEST_SHARED:
            raise UsageError(f"--smem: {self.smem:,} bytes, expected at most {_LARGEST_SHARED:,}")
        self.ctas = None if args.ctas is None else _number("--ctas", args.ctas, options.read_positive)
        self.specs = parse_args(args.args)

    def run(self, args: argparse.Namespace) -> Report:
        """Prepare, launch, report."""
        arrays = [spec.materialise(args.seed) for spec in self.specs]
        recorded = {} if self.ctas is None else {"cta_limit": self.ctas * math.prod(self.cluster)}
        session = options.open_session(args, **recorded)
        session.show(progress := for_terminal(delay=0.0))
        with (SILENT if args.verbose else progress).working(f"compiling {args.file}"):  # the compiler's warnings use the progress line
            ptx = load_ptx(args, session.backend.arch or DEFAULT_ARCH)
        entry = choose_entry(read_module(ptx, args.file), args.entry, args.file)
        check_parameters(entry, self.specs, args.file)
        prepared = session.prepare(ptx, name=args.file, cluster=math.prod(self.cluster))
        values = [_to_device(session, value) for value in arrays]
        session.address_name = name_addresses(prepared, entry.name, "--arg", arrays, values)
        status = 0
        with contextlib.suppress(ConsanError):  # if it cannot be launched, `launch` reports why
            remark(lambda: str(session.room(prepared, entry.name, self.block, self.smem, self.cluster)))
        try:
            session.launch(prepared, entry.name, self.grid, self.block, values, shared=self.smem, cluster=self.cluster)
        except KeyboardInterrupt:  # keep what was found so far
            status = int(ExitCode.INTERRUPTED)
        return judged(session, args.rules, status)


def _number(option: str, text: str, read: Any) -> int:
    try:
        return int(read(text))
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _to_device(session: Any, value: Any) -> bytes:
    """The bytes of a parameter: a value unchanged, a buffer as its device address, a tensor map of a device buffer."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, TensorMap):
        data: bytes = session.backend.tensor_map(value.at(int.from_bytes(_to_device(session, value.array), "little")))
        return data
    address = session.backend.alloc(value.nbytes)
    session.backend.write(address, value)
    return int(address).to_bytes(8, "little")


def choose_entry(module: Module, wanted: str | None, file: str) -> Function:
    """The kernel to launch: by name, mangled or not, or the only one in the file."""
    entries = entries_of(module)
    names = ", ".join(function.name for function in entries)
    if not entries:
        raise UsageError(f"{file} has no kernel{_templates(file)}")
    if wanted is None:
        if len(entries) > 1:
            raise UsageError(f"{file} has {len(entries)} kernels, choose one with --entry: {names}")
        return entries[0]
    found = [function for function in entries if function.name == wanted]
    found = found or [function for function in entries if _is_mangled(function.name, wanted)]
    if len(found) != 1:
        problem = "several kernels" if found else "no kernel"
        hint = "" if found else _nearest(wanted, entries)
        raise UsageError(f"--entry: {file} has {problem} called '{wanted}'; its kernels: {names}{hint}")
    return found[0]


def entries_of(module: Module) -> list[Function]:
    """The kernels of a module."""
    return [function for function in module.functions if function.kind == "entry" and not function.is_declaration]


def _nearest(wanted: str, entries: Sequence[Function]) -> str:
    from consan.reports.names import function_name

    return did_you_mean(wanted, (function_name(entry.name).rpartition("::")[2] for entry in entries))


def _templates(file: str) -> str:
    """What to do if all kernels of a .cu file are templates without an instance."""
    if not is_cuda(file) or not os.path.isfile(file):
        return ""
    names = [one.name for one in declarations(read_file(file)) if one.template]
    return f"; an instance of a template has to be named, such as --entry '{names[0]}<...>'" if names else ""


def _is_mangled(symbol: str, name: str) -> bool:
    """Whether a C++ symbol is this function, in any namespace and with any template arguments (Itanium ABI, source names)."""
    return symbol.startswith("_Z") and f"{len(name)}{name}" in symbol


def check_parameters(entry: Function, specs: Sequence[ArgSpec], file: str) -> None:
    """Check the number, type and size of the arguments."""
    sizes = [parameter.nbytes for parameter in entry.params]
    if len(sizes) != len(specs):
        listed = f" ({', '.join(map(str, sizes))} bytes)" if sizes else ""
        raise UsageError(f"{entry.name} takes {_arguments(len(sizes))}{listed}, {len(specs)} given with --arg")
    check_arguments(entry, specs, (lambda: read_file(file)) if is_cuda(file) else None)
    for index, (size, spec) in enumerate(zip(sizes, specs, strict=True), 1):
        if size != spec.parameter_bytes:
            raise UsageError(f"--arg {index} '{spec.text}': is {spec.parameter_bytes} bytes, {entry.name} expects {size} there")


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'s' * (number != 1)}"
