"""`consan ptx FILE`: what consan sees in a module, without running it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

from consan import late
from consan._errors import UsageError, did_you_mean
from consan.commands.parts.effects import with_effects
from consan.commands.parts.output import add_output, chosen_output, put
from consan.launching.source import add_compile_options, load_ptx

if TYPE_CHECKING:
    from consan.instrument import Instrumented

_WIDTH: Final = 160  # of tables in a file or pipe; a terminal has its own width


class PtxCommand:
    """Show sites, instrumented PTX, or what is not modelled."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", metavar="FILE", help="PTX (.ptx) or CUDA C++ (.cu)")
        parser.add_argument("--show", default="sites", metavar="|".join(VIEWS), help="what to show [sites]")
        parser.add_argument(
            "--effects", dest="show", action="store_const", const="effects", help="under each instruction, what consan takes it to do"
        )
        add_compile_options(parser)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Instrument and show. The status is 0 even if something is not modelled."""
        view = VIEWS.get(args.show)
        if view is None:
            raise UsageError(f"--show: expected one of {', '.join(VIEWS)}, got '{args.show}'{did_you_mean(args.show, VIEWS)}")
        chosen_output(args)
        return put(args, view(instrumented(args)))


def instrumented(args: argparse.Namespace) -> Instrumented:
    """The module with hooks, made as a session makes it."""
    return late.hooks.instrument(load_ptx(args), library=late.hooks.library_for, name=args.file)


def _ptx(module: Instrumented) -> str:
    return module.ptx if module.ptx.endswith("\n") else module.ptx + "\n"


def _sites(module: Instrumented) -> str:
    rows = [
        (
            str(site.number),
            site.function,
            str(site.ptx_line),
            f"{site.file}:{site.line}:{site.column}" if site.file else "",
            site.family,
            f"{site.access} {site.space}" if site.access != "none" else "",
            str(site.bytes or ""),
            site.ptx.strip(),
        )
        for site in module.sites
    ]
    table = _table(("site", "function", "line", "source", "family", "access", "bytes", "PTX"), rows, "no instruction is instrumented")
    return table + ("\n" + _hazards(module) if module.hazards else "")


def _hazards(module: Instrumented) -> str:
    """Register hazards of matrix products on any path, found without a launch."""
    rows = [
        (f"{found.kind} {found.hazard}", found.kernel, ", ".join(str(access.ptx_line) for access in found.accesses), found.message)
        for found in late.static_report.static_findings(module.hazards)
    ]
    return _table(("hazard", "kernel", "lines", "what"), rows, "no hazard in the text")


def _unmodelled(module: Instrumented) -> str:
    rows = [(gap.opcode, str(gap.ptx_line), gap.function) for function in module.functions for gap in function.unmodelled]
    rows += [("call of a function outside the module", "", name) for name in module.external]
    return _table(("opcode", "line", "function"), rows, "everything is modelled")


def _stats(module: Instrumented) -> str:
    rows = [
        (function.name, function.kind, *map(str, (function.memory_sites, function.sync_sites, function.private, len(function.unmodelled))))
        for function in module.functions
    ]
    return _table(("function", "kind", "memory", "synchronisation", "private", "not modelled"), rows, "no function")


def _effects(module: Instrumented) -> str:
    return with_effects(module.module)


VIEWS: Final[dict[str, Callable[[Instrumented], str]]] = {
    "sites": _sites,
    "effects": _effects,
    "instrumented": _ptx,
    "unmodelled": _unmodelled,
    "hazards": _hazards,
    "stats": _stats,
}


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], empty: str) -> str:
    """Aligned columns without borders, for cut and awk."""
    if not rows:
        return empty + "\n"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ignore")
    for row in rows:
        table.add_row(*row)
    width = max(_WIDTH, sum(max(len(row[index]) for row in (columns, *rows)) + 2 for index in range(len(columns))))
    console = Console(width=width, color_system=None, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())
