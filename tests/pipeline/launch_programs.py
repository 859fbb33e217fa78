"""Runs kernels of tests/kernels/launches in one block of `consan.check()`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import consan

FOLDER = Path(__file__).parents[1] / "kernels" / "launches"
FILES = {"add": "signals.cu", "publish": "signals.cu", "consume": "signals.cu", "hand_on": "state.cu"}  # the others: layers.cu


@functools.cache
def compiled(racy: bool, entry: str) -> consan.Kernel:
    """A kernel of the folder."""
    return consan.Kernel(FOLDER / FILES.get(entry, "layers.cu"), entry=entry, defines={"RACY": 1} if racy else {})


class Program:
    """Launches of kernels in one block of `consan.check()`."""

    def __init__(self, racy: bool, grid: int, **options: Any) -> None:
        self.racy, self.grid, self.options = racy, grid, options
        self.stream, self.other = consan.Stream(), consan.Stream()

    def __call__(self, entry: str, args: list[Any], **how: Any) -> consan.Report:
        options = {"device": "cpu", "stream": self.stream, **self.options, **how}
        return consan.launch(compiled(self.racy, entry), self.grid, 64, args, **options)


@contextlib.contextmanager
def program(racy: bool = False, grid: int = 2, **options: Any) -> Iterator[tuple[Program, Any]]:
    with consan.check(device="cpu") as live:
        yield Program(racy, grid, **options), live


def residual(how: int) -> consan.Report:
    """The report of a producer and of the layer behind it, a programmatic dependent."""
    file, (x, y, z, weights) = FOLDER / "residual.cu", (floats() for _ in range(4))
    with consan.check(device="cpu") as live:
        stream = consan.Stream()
        consan.launch(consan.Kernel(file, entry="producer"), 2, 64, [x, y], device="cpu", stream=stream)
        layer = consan.Kernel(file, entry="residual", defines={"HOW": how})
        consan.launch(layer, 2, 64, [y, weights, z], device="cpu", stream=stream, programmatic=True)
    return live.report


def looked_up(edge: bool) -> consan.Report:
    """The report of a launch, and of one in another stream whose threads all read four words: the first one writes the last of them."""
    with program() as (run, live):
        x, table, y = floats(), floats(256), floats()
        run("first_layer", [x, table[3:131]])
        if edge:
            run.other.wait(run.stream)
        run("look_up", [table, y], stream=run.other)
        assert (y == 5).all()
    return live.report


def floats(count: int = 128) -> Any:
    return np.ones(count, np.float32)


def situations(report: Any) -> list[tuple[str, str, str]]:
    return [(each.situation, each.hazard, each.severity) for each in report.findings]
