"""`consan check`: what differs between runs in which the accesses of a race come in both orders."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from consan import late
from consan._errors import NotSupported
from consan.files import read_file
from consan.launching.arguments import BufferSpec
from consan.launching.room import placed
from consan.launching.source import is_cuda
from consan.reports.model import Report
from consan.reports.source.declarations import SourceTexts
from consan.reports.source.names import function_name

if TYPE_CHECKING:
    from consan.commands.check import RequestedLaunch


def with_outcomes(requested: RequestedLaunch, args: argparse.Namespace, report: Report) -> Report:
    """The report, whose races say what differs; on the virtual machine only."""
    module = requested.module
    if report.device != "cpu" or module is None or report.exit or not any(each.value for each in report.active):
        return report
    x, y, z = requested.block
    names = {each.name for each in module.functions if each.kind == "func" or each.name == requested.entry}
    if late.schedules.observations(module, names, x * y * z):
        return report
    backend = late.reruns.outcomes.VirtualBackend()
    inputs = placed(requested.specs, backend, late.exploration.data_seed(args.seed))
    loaded = backend.machine.load(module, args.file)
    given = zip(_names(args, requested.entry, len(requested.specs)), inputs.arrays, requested.specs, strict=True)
    shown = [(name, array, spec) for name, array, spec in given if isinstance(spec, BufferSpec) and isinstance(array, np.ndarray)]

    def run(schedule: Any) -> tuple[list[tuple[str, Any]], int]:
        backend.machine.schedules = lambda seed: schedule
        inputs.placement.refresh()
        stats = backend.launch(
            loaded, requested.entry, requested.grid, requested.block, inputs.values, shared=requested.smem, cluster=requested.cluster,
            timeout=late.reruns.outcomes.LONGEST,
        )  # fmt: skip
        if stats.timed_out or stats.deadlocked or stats.faults:
            raise NotSupported("the launch did not end by itself")
        return [(name, _as_numbers(inputs.placement.read(array), spec)) for name, array, spec in shown], stats.instructions

    return late.reruns.outcomes.TwoOutcomes(run, requested.grid, requested.block, requested.ends).shown(report)


def _names(args: argparse.Namespace, entry: str, count: int) -> list[str]:
    """The parameters as the source names them, else by their numbers."""
    source = [read_file(args.file)] if is_cuda(args.file) else []
    found = SourceTexts(source).parameters(function_name(entry).rsplit("::", 1)[-1])
    return list(found) if len(found) == count else [f"argument {number}" for number in range(1, count + 1)]


def _as_numbers(array: Any, spec: BufferSpec) -> Any:
    """The numbers of raw words."""
    return (array.astype(np.uint32) << 16).view(np.float32) if spec.type == "bf16" else array
